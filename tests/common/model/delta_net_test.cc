// Models with recurrent layers: what their metadata says, and which rows and columns a rank has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/model/build_spec.h"
#include "common/model/slices.h"
#include "common/model/state_bytes.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

gguf::File OpenGolden(const std::string& name) {
  auto file = gguf::File::Open("tests/golden/arch/" + name + "/model.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

ModelSpec SpecOfGolden(const std::string& name) {
  const gguf::File file = OpenGolden(name);
  const auto spec = BuildSpec(file);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

TEST(DeltaNetTest, TheFilesFlagsComeBeforeItsInterval) {
  const ModelSpec spec = SpecOfGolden("qwen35-pattern");
  EXPECT_THAT(spec.delta_net->layers, ElementsAre(0, 2, 3));
  ASSERT_EQ(spec.kv_groups.size(), 1u);
  EXPECT_THAT(spec.kv_groups[0].layers, ElementsAre(1, 4));
  EXPECT_TRUE(spec.delta_net->strided_heads);
  EXPECT_THAT(SpecOfGolden("qwen35").delta_net->layers, ElementsAre(0, 1, 3, 4));
  EXPECT_FALSE(SpecOfGolden("qwen3next").delta_net->strided_heads);
}

TEST(DeltaNetTest, DraftHeadsAreNoLayers) {
  const ModelSpec spec = SpecOfGolden("qwen35-mtp");
  EXPECT_EQ(spec.num_layers, 4u);
  EXPECT_EQ(spec.num_draft_layers, 1u);
  EXPECT_THAT(spec.kv_groups[0].layers, ElementsAre(1, 3));
}

TEST(DeltaNetTest, AStateIsCutByHeads) {
  const ModelSpec spec = SpecOfGolden("qwen35moe");  // 3 recurrent layers, G 2, R 6, S 64, K 4
  const uint64_t whole = StateBytesPerSequence(spec, *MakeShardPlan(spec, 0, 1));
  EXPECT_EQ(whole, 3u * 4 * (3 * (2 * 2 + 6) * 64 + 6 * 64 * 64));
  EXPECT_EQ(StateBytesPerSequence(spec, *MakeShardPlan(spec, 1, 2)), whole / 2);
  EXPECT_EQ(StateBytesPerSequence(SpecOfGolden("qwen3"), ShardPlan()), 0u);
}

TEST(DeltaNetTest, RanksDivideTheKeyHeads) {
  const auto plan = MakeShardPlan(SpecOfGolden("qwen35"), 0, 4);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("4 does not divide the 2 key heads of recurrent layers"));
}

// The numbers of value heads of a rank of two.
std::vector<uint64_t> ValueHeadsOf(uint64_t rank, const DeltaNetSpec& net) {
  std::vector<uint64_t> heads;
  for (uint64_t head = 0; head < net.value_heads; ++head) {
    const uint64_t key =
        net.strided_heads ? head % net.key_heads : head / (net.value_heads / net.key_heads);
    if (key / (net.key_heads / 2) == rank) heads.push_back(head);
  }
  return heads;
}

// Row numbers `base + size * unit + i` for every unit and i < count.
std::vector<uint64_t> RowsOf(const std::vector<uint64_t>& units, uint64_t base, uint64_t size,
                             uint64_t count) {
  std::vector<uint64_t> rows;
  for (const uint64_t unit : units) {
    for (uint64_t i = 0; i < count; ++i) rows.push_back(base + size * unit + i);
  }
  return rows;
}

// F32 values of a slice, as a rank has them.
std::vector<float> ValuesOf(const WeightSlice& slice) {
  std::vector<float> values(slice.bytes() / sizeof(float));
  slice.Gather(reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// Those of a tensor at the given rows and columns; no columns: all.
std::vector<float> ValuesAt(const gguf::TensorInfo& tensor, const std::vector<uint64_t>& rows,
                            std::vector<uint64_t> cols) {
  const uint64_t width = tensor.dims[0];
  if (cols.empty()) cols = RowsOf({0}, 0, 0, width);
  std::vector<float> values;
  for (const uint64_t row : rows) {
    for (const uint64_t col : cols) {
      float& value = values.emplace_back();
      std::memcpy(&value, tensor.data + (row * width + col) * sizeof(float), sizeof(float));
    }
  }
  return values;
}

// Layer 0's slices of one rank of two.
std::map<Role, WeightSlice> SlicesOf(const gguf::File& file, const ModelSpec& spec, int rank) {
  std::map<Role, WeightSlice> slices;
  const auto status =
      ForEachSlice(file, spec, *MakeShardPlan(spec, rank, 2), [&](const WeightSlice& slice) {
        if (slice.layer == 0 || slice.role == Role::kAttnGate) slices[slice.role] = slice;
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return slices;
}

class HeadsOfRanksTest : public testing::TestWithParam<const char*> {};

TEST_P(HeadsOfRanksTest, ValueHeadsGoWithTheirKeyHead) {
  const gguf::File file = OpenGolden(GetParam());
  const ModelSpec spec = *BuildSpec(file);
  const DeltaNetSpec& net = *spec.delta_net;
  const uint64_t dim = net.head_dim, keys = net.key_heads / 2;
  for (int rank = 0; rank < 2; ++rank) {
    const auto slices = SlicesOf(file, spec, rank);
    const std::vector<uint64_t> values = ValueHeadsOf(static_cast<uint64_t>(rank), net);
    const auto tensor = [&](const std::string& name) { return *file.FindTensor("blk.0." + name); };
    const auto value_rows = RowsOf(values, 0, dim, dim);
    EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaOut)),
              ValuesAt(tensor("ssm_out.weight"), RowsOf({0}, 0, 0, spec.hidden_size), value_rows));
    EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaDecayRate)),
              ValuesAt(tensor("ssm_a"), {0}, RowsOf(values, 0, 1, 1)));
    // The convolution's channels: q, k and v.
    const uint64_t first_key = static_cast<uint64_t>(rank) * keys * dim;
    std::vector<uint64_t> channels = RowsOf({0}, first_key, 0, keys * dim);
    for (const uint64_t row : RowsOf({0}, net.key_heads * dim + first_key, 0, keys * dim))
      channels.push_back(row);
    for (const uint64_t row : value_rows) channels.push_back(2 * net.key_heads * dim + row);
    EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaConv)),
              ValuesAt(tensor("ssm_conv1d.weight"), channels, {}));
    if (file.FindTensor("blk.0.attn_qkv.weight") == nullptr) continue;
    EXPECT_EQ(
        ValuesOf(slices.at(Role::kDeltaV)),
        ValuesAt(tensor("attn_qkv.weight"), RowsOf(values, 2 * net.key_heads * dim, dim, dim), {}));
    EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaGate)),
              ValuesAt(tensor("attn_gate.weight"), value_rows, {}));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HeadsOfRanksTest,
                         testing::Values("qwen35", "qwen35moe", "qwen3next", "qwen3next-legacy"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Of each key head q, k, its value heads and their gates; beta before alpha.
TEST(DeltaNetTest, PartsOfATensorByKeyHead) {
  const gguf::File file = OpenGolden("qwen3next-legacy");
  const ModelSpec spec = *BuildSpec(file);
  const uint64_t dim = spec.delta_net->head_dim;  // 2 key heads, 4 value heads
  const auto slices = SlicesOf(file, spec, 1);
  const gguf::TensorInfo& in = *file.FindTensor("blk.0.ssm_in.weight");
  const uint64_t unit = 6 * dim;
  EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaQ)), ValuesAt(in, RowsOf({1}, 0, unit, dim), {}));
  EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaK)), ValuesAt(in, RowsOf({1}, dim, unit, dim), {}));
  EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaV)),
            ValuesAt(in, RowsOf({1}, 2 * dim, unit, 2 * dim), {}));
  EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaGate)),
            ValuesAt(in, RowsOf({1}, 4 * dim, unit, 2 * dim), {}));
  const gguf::TensorInfo& gates = *file.FindTensor("blk.0.ssm_ba.weight");
  EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaWrite)), ValuesAt(gates, {4, 5}, {}));
  EXPECT_EQ(ValuesOf(slices.at(Role::kDeltaDecay)), ValuesAt(gates, {6, 7}, {}));
}

TEST(DeltaNetTest, TheGateFollowsEachHeadsQuery) {
  const gguf::File file = OpenGolden("qwen35moe");
  const ModelSpec spec = *BuildSpec(file);
  const gguf::TensorInfo& q = *file.FindTensor("blk.3.attn_q.weight");
  EXPECT_EQ(ValuesOf(SlicesOf(file, spec, 1).at(Role::kAttnGate)),
            ValuesAt(q, RowsOf({2, 3}, spec.head_dim, 2 * spec.head_dim, spec.head_dim), {}));
}

// Keys of a qwen35 without tensors to speak of: enough for a reader's complaints.
TinyModel Hybrid() {
  TinyModel model;
  model.architecture = "qwen35";
  model.skip = [](const std::string& name) { return name != "token_embd.weight"; };
  model.layers = 1;
  return model;
}

std::string Complaint(uint32_t inner, uint32_t taps, std::vector<int32_t> sections) {
  TinyModel model = Hybrid();
  model.more_keys = [&](gguf::GgufBuilder& builder) {
    builder.AddUint32("qwen35.ssm.state_size", 8);
    builder.AddUint32("qwen35.ssm.group_count", 2);
    builder.AddUint32("qwen35.ssm.time_step_rank", 4);
    builder.AddUint32("qwen35.ssm.inner_size", inner);
    builder.AddUint32("qwen35.ssm.conv_kernel", taps);
    builder.AddUint32("qwen35.full_attention_interval", 1);
    gguf::ByteWriter numbers;
    numbers.Number(gguf::ValueType::kInt32).Number(uint64_t{sections.size()});
    for (const int32_t section : sections) numbers.Number(section);
    builder.AddRaw("qwen35.rope.dimension_sections", gguf::ValueType::kArray, numbers.bytes());
  };
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  return spec.ok() ? "" : std::string(spec.status().message());
}

TEST(DeltaNetTest, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(Complaint(40, 4, {2, 1, 1, 0}),
              HasSubstr("\"qwen35.ssm.inner_size\": needed 4 value heads of size 8, found 40"));
  EXPECT_THAT(Complaint(32, 1, {2, 1, 1, 0}),
              HasSubstr("ssm.conv_kernel: needed 2 to 16, found 1"));
  EXPECT_THAT(Complaint(32, 4, {1, 1, 1, 1}),
              HasSubstr("sections 1, 1, 1 do not cover pair 3 of the 4 rotated ones"));
  EXPECT_THAT(Complaint(32, 4, {2, 1, 1}), HasSubstr("needed 4 values, found 3"));
  const BuiltModel none = BuildTiny(Hybrid());
  EXPECT_THAT(std::string(BuildSpec(none.file).status().message()),
              HasSubstr("qwen35.ssm.group_count"));
}

}  // namespace
}  // namespace tandem::model
