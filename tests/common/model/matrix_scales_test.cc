// A scale beside a matrix is accepted, checked, and given to every rank that has a part of the
// matrix; what is not the scale of a matrix is refused.
#include "common/model/matrix_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/model/build_spec.h"
#include "common/model/slices.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Scales = std::map<std::string, std::vector<float>>;  // by name

void Add(const Scales& scales, gguf::GgufBuilder& builder) {
  for (const auto& [name, values] : scales) {
    builder.AddTensor(name, {values.size()}, tensor::Type::kF32, std::as_bytes(std::span(values)));
  }
}

TinyModel Tiny(const Scales& scales) {
  TinyModel model;
  model.more_tensors = [scales](gguf::GgufBuilder& builder) { Add(scales, builder); };
  return model;
}

// A golden model with scales.
BuiltModel Golden(const std::string& name, const Scales& scales) {
  const auto file = gguf::File::Open("tests/golden/arch/" + name + "/model.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  gguf::GgufBuilder builder;
  for (const auto& [key, value] : file->metadata().entries()) builder.AddValue(key, value);
  for (const gguf::TensorInfo& tensor : file->tensors()) {
    builder.AddTensor(tensor.name, {tensor.dims.begin(), tensor.dims.begin() + tensor.num_dims},
                      tensor.type, {tensor.data, tensor.bytes});
  }
  Add(scales, builder);
  std::vector<std::byte> bytes = builder.Build();
  auto built = gguf::File::Parse(bytes);
  EXPECT_TRUE(built.ok()) << built.status();
  return {std::move(bytes), *std::move(built)};
}

// Of the roles of one layer that a rank has.
std::map<Role, WeightSlice> SlicesOf(const BuiltModel& built, int layer, int rank = 0, int size = 1,
                                     bool expert_parallel = false) {
  std::map<Role, WeightSlice> slices;
  const auto spec = BuildSpec(built.file);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return slices;
  const auto plan = MakeShardPlan(*spec, rank, size, expert_parallel);
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(ForEachSlice(built.file, *spec, *plan, [&](const WeightSlice& slice) {
                if (slice.layer == layer) slices[slice.role] = slice;
                return absl::OkStatus();
              }).ok());
  return slices;
}

TEST(MatrixScalesTest, EveryRankHasTheScaleOfAMatrix) {
  const BuiltModel built = BuildTiny(Tiny({{"blk.0.attn_q.scale", {0.5f}},
                                           {"blk.0.attn_q.input_scale", {7.0f}},
                                           {"blk.0.ffn_down.scale", {-2.0f}},
                                           {"blk.1.attn_k.scale", {3.0f}},
                                           {"output.scale", {0.25f}}}));
  for (const int rank : {0, 1}) {
    auto first = SlicesOf(built, 0, rank, 2);
    EXPECT_THAT(first[Role::kAttnQ].scales, ElementsAre(0.5f));
    EXPECT_THAT(first[Role::kFfnDown].scales, ElementsAre(-2.0f));
    EXPECT_THAT(first[Role::kAttnK].scales, IsEmpty());
    EXPECT_THAT(SlicesOf(built, 1, rank, 2)[Role::kAttnK].scales, ElementsAre(3.0f));
    EXPECT_THAT(SlicesOf(built, -1, rank, 2)[Role::kOutput].scales, ElementsAre(0.25f));
  }
}

TEST(MatrixScalesTest, PartsOfATensorShareItsScale) {
  const BuiltModel built =
      Golden("phi3", {{"blk.0.attn_qkv.scale", {0.5f}}, {"blk.0.ffn_up.scale", {3.0f}}});
  auto slices = SlicesOf(built, 0, 1, 2);
  for (const Role role : {Role::kAttnQ, Role::kAttnK, Role::kAttnV}) {
    EXPECT_THAT(slices[role].scales, ElementsAre(0.5f)) << static_cast<int>(role);
  }
  EXPECT_THAT(slices[Role::kFfnGate].scales, ElementsAre(3.0f));
  EXPECT_THAT(slices[Role::kFfnUp].scales, ElementsAre(3.0f));
}

TEST(MatrixScalesTest, OfRowsThatAreScattered) {
  const BuiltModel built = Golden("qwen35", {{"blk.0.attn_qkv.scale", {0.5f}}});
  auto slices = SlicesOf(built, 0, 1, 2);
  EXPECT_TRUE(slices[Role::kDeltaV].scattered());
  EXPECT_THAT(slices[Role::kDeltaV].scales, ElementsAre(0.5f));
}

TEST(MatrixScalesTest, ARankHasThoseOfItsExperts) {
  for (const auto& [name, tensor] :
       {std::pair{"qwen3moe", "ffn_up_exps"}, std::pair{"qwen35moe-fused", "ffn_gate_up_exps"}}) {
    const auto golden = BuildSpec(Golden(name, {}).file);
    ASSERT_TRUE(golden.ok()) << golden.status();
    std::vector<float> all(golden->moe->num_experts);
    std::iota(all.begin(), all.end(), 1.0f);
    const BuiltModel built = Golden(name, {{"blk.0." + std::string(tensor) + ".scale", all}});
    const std::vector<float> half(all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
    EXPECT_EQ(SlicesOf(built, 0, 1, 2)[Role::kExpertUp].scales, all) << name;
    auto slices = SlicesOf(built, 0, 1, 2, /*expert_parallel=*/true);
    EXPECT_EQ(slices[Role::kExpertUp].scales, half) << name;
    EXPECT_THAT(slices[Role::kExpertDown].scales, IsEmpty()) << name;
  }
}

// Gemma 4's own vectors have such names.
TEST(MatrixScalesTest, WhatTheTableNamesIsNoScale) {
  const BuiltModel built = Golden("gemma4-moe", {});
  ASSERT_NE(built.file.FindTensor("blk.0.ffn_down_exps.scale"), nullptr);
  ASSERT_NE(built.file.FindTensor("blk.0.ffn_gate_inp.scale"), nullptr);
  auto slices = SlicesOf(built, 0);
  EXPECT_THAT(slices[Role::kExpertDown].scales, IsEmpty());
  EXPECT_THAT(slices[Role::kRouter].scales, IsEmpty());
  EXPECT_TRUE(slices.contains(Role::kExpertScale));
  EXPECT_TRUE(slices.contains(Role::kRouterNorm));
}

std::string Message(const TinyModel& model) {
  const auto spec = BuildSpec(BuildTiny(model).file);
  return spec.ok() ? "" : std::string(spec.status().message());
}

TEST(MatrixScalesTest, OfAnotherShapeTypeOrValue) {
  EXPECT_EQ(Message(Tiny({{"blk.0.attn_q.scale", {1, 2}}})),
            "tensor \"blk.0.attn_q.scale\": needed type F32 and shape [1], found F32 and [2]");
  EXPECT_EQ(Message(Tiny({{"blk.1.ffn_up.scale", {NAN}}})),
            "tensor \"blk.1.ffn_up.scale\": needed finite numbers, found nan");
  TinyModel halves;
  halves.more_tensors = [](gguf::GgufBuilder& builder) {
    builder.AddTensor("output.scale", {1}, tensor::Type::kF16, std::vector<std::byte>(2));
  };
  EXPECT_EQ(Message(halves),
            "tensor \"output.scale\": needed type F32 and shape [1], found F16 and [1]");
  const BuiltModel experts = Golden("qwen3moe", {{"blk.0.ffn_up_exps.scale", {1.0f}}});
  const std::string message(BuildSpec(experts.file).status().message());
  EXPECT_THAT(message, testing::MatchesRegex(".*ffn_up_exps.scale.*needed type F32 and shape "
                                             "\\[[0-9]+\\], found F32 and \\[1\\]"));
}

TEST(MatrixScalesTest, OfWhatHasNone) {
  for (const std::string name :
       {"token_embd.scale", "token_embd.input_scale", "blk.0.attn_norm.scale", "output_norm.scale",
        "blk.0.attn_x.scale", "attn_q.scale", "blk.0.attn_q.scales", ".scale"}) {
    EXPECT_EQ(Message(Tiny({{name, {1}}})),
              "tensor \"" + name + "\" is not one that architecture llama has");
  }
  EXPECT_EQ(Message(Tiny({{"blk.9.attn_q.scale", {1}}})),
            "tensor \"blk.9.attn_q.scale\" is of tensor \"blk.9.attn_q.weight\", which is missing");
  TinyModel tied = Tiny({{"output.scale", {1}}});
  tied.tied = true;
  EXPECT_EQ(Message(tied),
            "tensor \"output.scale\" is of tensor \"output.weight\", which is missing");
}

}  // namespace
}  // namespace tandem::model
