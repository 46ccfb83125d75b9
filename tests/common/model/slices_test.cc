// The slices of all ranks hold against a naive split: every value of every tensor, by its global
// row and column.
#include "common/model/slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/model/build_spec.h"
#include "common/tensor/dequantize.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

struct Case {
  std::string name;
  TinyModel model;
  int max_size;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

TinyModel Model(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, tensor::Type type) {
  TinyModel model;
  model.layers = 1;
  model.hidden = 256;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = head_dim;
  model.ffn = 512;
  model.matrix_type = type;
  model.qkv_bias = model.output_bias = model.qk_norm = true;
  return model;
}

std::vector<Case> Cases() {
  using tensor::Type;
  std::vector<Case> cases = {
      {"SixHeadsOverThree", Model(6, 3, 16, Type::kF32), 6},
      {"OneKvHead", Model(4, 1, 16, Type::kF16), 4},
      {"KvPerHead", Model(4, 4, 16, Type::kBF16), 4},
      // 12 values per head: cuts fall inside blocks of 32.
      {"Q8CutInsideBlocks", Model(8, 2, 12, Type::kQ8_0), 4},
      {"Q4CutInsideBlocks", Model(8, 4, 20, Type::kQ4_0), 4},
      {"Q5ThreeRanks", Model(6, 3, 16, Type::kQ5_0), 3},
      // Blocks of 256 over heads of 64, and over 512 FFN columns in three parts.
      {"Q4KCutInsideBlocks", Model(12, 3, 64, Type::kQ4_K), 4},
      {"Q6KCutInsideBlocks", Model(8, 2, 32, Type::kQ6_K), 4},
  };
  cases[0].model.ffn = 50;
  cases[1].model.tied = true;
  cases[2].model.vocab = 4;
  return cases;
}

// Bits, so that any pattern the random weights decode to is compared, NaN too.
using Matrix = std::vector<uint32_t>;

Matrix Decode(tensor::Type type, const std::byte* data, uint64_t rows, uint64_t cols,
              uint64_t stride_bytes) {
  std::vector<float> values(rows * cols);
  for (uint64_t row = 0; row < rows; ++row) {
    tensor::Dequantize(type, data + row * stride_bytes, values.data() + row * cols, cols);
  }
  Matrix bits(values.size());
  if (!bits.empty()) std::memcpy(bits.data(), values.data(), bits.size() * sizeof(float));
  return bits;
}

// Where a rank's rows and columns of a role are, said in the words of the issue rather than those
// of the table.
struct Naive {
  std::set<uint64_t> rows;
  std::set<uint64_t> cols;
};

Naive NaiveSplit(const TinyModel& model, Role role, uint64_t rows, uint64_t cols,
                 const ShardPlan& plan) {
  const uint32_t per_rank = model.heads / plan.size;
  const uint32_t group = model.heads / model.kv_heads;
  ModelSpec sizes;
  sizes.ffn_size = model.ffn;
  const Range ffn = FfnRange(sizes, plan, 0);
  const auto mine = [&](uint64_t head) {
    return head / per_rank == static_cast<uint64_t>(plan.rank);
  };
  const auto kv_mine = [&](uint64_t kv_head) {
    for (uint64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      if (mine(head)) return true;
    }
    return false;
  };
  const auto in = [](uint64_t i, Range range) { return i >= range.begin && i < range.end; };
  Naive naive;
  for (uint64_t row = 0; row < rows; ++row) {
    bool keep = true;
    if (role == Role::kAttnQ) keep = mine(row / model.head_dim);
    if (role == Role::kAttnK || role == Role::kAttnV) keep = kv_mine(row / model.head_dim);
    if (role == Role::kFfnGate || role == Role::kFfnUp) keep = in(row, ffn);
    if (role == Role::kTokenEmbedding || role == Role::kOutput) keep = in(row, plan.vocab);
    if (keep) naive.rows.insert(row);
  }
  for (uint64_t col = 0; col < cols; ++col) {
    bool keep = true;
    if (role == Role::kAttnOutput || role == Role::kAttnQBias) keep = mine(col / model.head_dim);
    if (role == Role::kAttnKBias || role == Role::kAttnVBias) keep = kv_mine(col / model.head_dim);
    if (role == Role::kFfnDown) keep = in(col, ffn);
    if (keep) naive.cols.insert(col);
  }
  return naive;
}

class SlicesTest : public testing::TestWithParam<Case> {};

TEST_P(SlicesTest, MatchTheNaiveSplitAndCoverEveryTensor) {
  const TinyModel& model = GetParam().model;
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (int size = 1; size <= GetParam().max_size; ++size) {
    if (model.heads % size != 0) continue;
    std::map<std::string, std::vector<int>> covered;  // per value: on how many ranks
    for (int rank = 0; rank < size; ++rank) {
      const auto plan = MakeShardPlan(*spec, rank, size);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const auto status = ForEachSlice(built.file, *spec, *plan, [&](const WeightSlice& slice) {
        const gguf::TensorInfo& tensor = *built.file.FindTensor(slice.name);
        const uint64_t cols = tensor.dims[0];
        const uint64_t rows = tensor.dims[1];
        const Matrix whole =
            Decode(tensor.type, tensor.data, rows, cols, tensor::RowBytes(tensor.type, cols));
        const Matrix part =
            Decode(slice.type, slice.data, slice.rows, slice.cols, slice.row_stride_bytes);
        const Naive naive = NaiveSplit(model, slice.role, rows, cols, *plan);
        EXPECT_EQ(slice.rows, naive.rows.size()) << slice.name;
        EXPECT_EQ(slice.col_count, naive.cols.size()) << slice.name;
        EXPECT_LE(slice.col_begin + slice.col_count, slice.cols);
        EXPECT_LT(slice.cols - slice.col_count, 2 * tensor::Traits(slice.type).block_values);
        std::vector<int>& counts = covered[slice.name];
        counts.resize(rows * cols);
        uint64_t r = 0;
        for (const uint64_t row : naive.rows) {
          uint64_t c = slice.col_begin;
          for (const uint64_t col : naive.cols) {
            if (part[r * slice.cols + c] != whole[row * cols + col]) {
              ADD_FAILURE() << slice.name << " row " << row << " column " << col << " rank "
                            << rank;
              return absl::InternalError("differs");
            }
            ++counts[row * cols + col];
            ++c;
          }
          ++r;
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
    }
    // All of every tensor is somewhere; what is not replicated, and no shared KV head, is there
    // once.
    EXPECT_EQ(covered.size(), built.file.tensors().size());
    for (const gguf::TensorInfo& tensor : built.file.tensors()) {
      const std::string name(tensor.name);
      const bool norm = name.find("norm") != std::string::npos || name == "blk.0.attn_output.bias";
      const bool kv =
          name.find("attn_k") != std::string::npos || name.find("attn_v") != std::string::npos;
      for (const int count : covered[name]) {
        ASSERT_GE(count, 1) << name;
        if (norm) {
          ASSERT_EQ(count, size) << name;
        } else if (!kv) {
          ASSERT_EQ(count, 1) << name;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SlicesTest, testing::ValuesIn(Cases()),
                         [](const auto& param) { return param.param.name; });

// Every byte of every tensor that a model computes with is on some rank, whatever the family.
class FamilySlicesTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilySlicesTest, TheRanksTogetherHoldEveryRowOfEveryTensor) {
  const auto file =
      gguf::File::Open(std::string("tests/golden/arch/") + GetParam() + "/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto spec = BuildSpec(*file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (const bool expert_parallel : {false, true}) {
    if (expert_parallel && !spec->moe.has_value()) continue;
    std::map<std::string, std::vector<char>> held;  // per byte of a tensor
    for (int rank = 0; rank < 2; ++rank) {
      const auto plan = MakeShardPlan(*spec, rank, 2, expert_parallel);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_TRUE(ForEachSlice(*file, *spec, *plan, [&](const WeightSlice& slice) {
                    const gguf::TensorInfo& tensor = *file->FindTensor(slice.name);
                    std::vector<char>& bytes = held[slice.name];
                    bytes.resize(tensor.bytes);
                    using Runs = std::vector<WeightSlice::Run>;
                    const bool scattered = slice.scattered();
                    const Runs rows = scattered ? slice.row_runs : Runs{{0, slice.rows}};
                    const Runs cols = scattered ? slice.col_runs : Runs{{0, slice.cols}};
                    for (uint64_t matrix = 0; matrix < slice.count; ++matrix) {
                      const uint64_t first = static_cast<uint64_t>(slice.data - tensor.data) +
                                             matrix * slice.matrix_stride_bytes;
                      for (const auto& run : rows) {
                        for (uint64_t row = run.begin; row < run.end; ++row) {
                          for (const auto& part : cols) {
                            const uint64_t at = first + row * slice.row_stride_bytes +
                                                tensor::RowBytes(slice.type, part.begin);
                            const uint64_t size =
                                tensor::RowBytes(slice.type, part.end - part.begin);
                            if (at + size > tensor.bytes) return absl::OutOfRangeError(slice.name);
                            std::fill_n(bytes.begin() + static_cast<int64_t>(at), size, 1);
                          }
                        }
                      }
                    }
                    return absl::OkStatus();
                  }).ok());
    }
    for (const gguf::TensorInfo& tensor : file->tensors()) {
      const std::string name(tensor.name);
      const bool folded = name.starts_with("rope_") || name.ends_with("layer_output_scale.weight");
      if (folded) continue;  // into the spec
      ASSERT_TRUE(held.contains(name)) << name;
      EXPECT_EQ(std::count(held[name].begin(), held[name].end(), 0), 0) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilySlicesTest,
                         testing::Values("llama", "llama-moe", "qwen2", "qwen3", "qwen2moe",
                                         "qwen3moe", "gpt2", "phi3", "deepseek2-lite",
                                         "deepseek2-v3", "deepseek2-v3-split", "gpt-oss", "gemma2",
                                         "gemma3", "gemma4", "gemma4-dense", "gemma4-moe", "qwen35",
                                         "qwen35-pattern", "qwen35moe", "qwen35moe-fused",
                                         "qwen3next", "qwen3next-legacy", "smollm3", "mistral3",
                                         "glm4moe", "minimax-m2", "llama4"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ForEachSliceTest, StreamsLayerByLayerAndStopsAtAnError) {
  const BuiltModel built = BuildTiny(TinyModel());
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok());
  const auto plan = MakeShardPlan(*spec, 0, 1);
  std::vector<int> layers;
  ASSERT_TRUE(ForEachSlice(built.file, *spec, *plan, [&](const WeightSlice& slice) {
                layers.push_back(slice.layer);
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(layers.size(), 3u + 2 * 9);
  EXPECT_TRUE(std::is_sorted(layers.begin(), layers.end()));
  EXPECT_EQ(layers.front(), -1);
  EXPECT_EQ(layers.back(), 1);
  int calls = 0;
  EXPECT_EQ(ForEachSlice(built.file, *spec, *plan,
                         [&](const WeightSlice&) {
                           ++calls;
                           return absl::AbortedError("enough");
                         }),
            absl::AbortedError("enough"));
  EXPECT_EQ(calls, 1);
}

TEST(ForEachSliceTest, RopeFactorsAreNotLoaded) {
  TinyModel model;
  model.rope_factors = {1, 1, 1, 1};
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok());
  ASSERT_TRUE(
      ForEachSlice(built.file, *spec, *MakeShardPlan(*spec, 0, 1), [](const WeightSlice& s) {
        EXPECT_NE(s.role, Role::kRopeFactors);
        return absl::OkStatus();
      }).ok());
}

TEST(ForEachSliceTest, AnotherFileIsRefused) {
  const BuiltModel built = BuildTiny(TinyModel());
  TinyModel larger;
  larger.ffn = 128;
  const BuiltModel other = BuildTiny(larger);
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(WeightBytes(other.file, *spec, *MakeShardPlan(*spec, 0, 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(WeightBytesTest, OneRankNeedsAllTensors) {
  const BuiltModel built = BuildTiny(Model(8, 2, 32, tensor::Type::kQ8_0));
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  uint64_t all = 0;
  for (const gguf::TensorInfo& tensor : built.file.tensors()) all += tensor.bytes;
  EXPECT_EQ(*WeightBytes(built.file, *spec, *MakeShardPlan(*spec, 0, 1)), all);
  EXPECT_LT(*WeightBytes(built.file, *spec, *MakeShardPlan(*spec, 0, 2)), all * 6 / 10);
}

}  // namespace
}  // namespace tandem::model
