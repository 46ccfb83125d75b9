#include "common/model/adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/model/build_spec.h"
#include "tests/common/gguf/gguf_builder.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

constexpr uint32_t kRank = 3;

std::span<const std::byte> Bytes(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// A file of one matrix's change; each field can be made wrong.
struct AdapterFile {
  std::string general_type = "adapter";
  std::string adapter_type = "lora";
  std::string architecture = "llama";
  float alpha = 6;
  bool activated = false;
  std::string target = "blk.1.attn_q.weight";
  std::string suffix_of_b = ".lora_b";
  uint64_t rank = kRank;
  uint64_t cols = 32;
  uint64_t rows = 32;

  std::vector<std::byte> Build() const {
    std::vector<float> a(rank * cols), b(rows * rank);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) + 0.5f;
    gguf::GgufBuilder file;
    if (activated) {
      file.AddArray<uint32_t>("adapter.alora.invocation_tokens", gguf::ValueType::kUint32, {5});
    }
    return file.AddString("general.type", general_type)
        .AddString("general.architecture", architecture)
        .AddString("adapter.type", adapter_type)
        .AddFloat("adapter.lora.alpha", alpha)
        .AddTensor(target + ".lora_a", {cols, rank}, tensor::Type::kF32, Bytes(a))
        .AddTensor(target + suffix_of_b, {rank, rows}, tensor::Type::kF32, Bytes(b))
        .Build();
  }
};

class AdapterTest : public ::testing::Test {
 protected:
  AdapterTest() : AdapterTest(TinyModel()) {}
  explicit AdapterTest(const TinyModel& model) : model_(BuildTiny(model)) {
    auto spec = BuildSpec(model_.file, {});
    EXPECT_TRUE(spec.ok()) << spec.status();
    spec_ = *std::move(spec);
  }

  absl::StatusOr<Adapter> Read(const AdapterFile& wanted) {
    bytes_ = wanted.Build();
    auto file = gguf::File::Parse(bytes_);
    EXPECT_TRUE(file.ok()) << file.status();
    return ReadAdapter(*std::move(file), spec_);
  }

  std::string Refusal(const AdapterFile& wanted) {
    return std::string(Read(wanted).status().message());
  }

  BuiltModel model_;
  ModelSpec spec_;
  std::vector<std::byte> bytes_;
};

ShardPlan PlanOf(const ModelSpec& spec, int rank, int size) {
  auto plan = MakeShardPlan(spec, rank, size);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

TEST_F(AdapterTest, ReadsAMatrixsChange) {
  const auto adapter = Read({});
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  ASSERT_EQ(adapter->matrices.size(), 1u);
  const AdaptedMatrix& matrix = adapter->matrices[0];
  EXPECT_EQ(matrix.role(), Role::kAttnQ);
  EXPECT_EQ(matrix.layer, 1u);
  EXPECT_EQ(matrix.rank(), kRank);
  EXPECT_EQ(matrix.scale, 2.0f);
  const AdapterSlice slice = ReadSlice(matrix, spec_, PlanOf(spec_, 0, 1));
  EXPECT_EQ(slice.rows, 32u);
  EXPECT_EQ(slice.cols, 32u);
  EXPECT_EQ(slice.a[33], 33.0f);
  EXPECT_EQ(slice.b[4], 9.0f) << "times the scale";
}

TEST_F(AdapterTest, AnAlphaOfZeroLeavesTheProductAsItIs) {
  const auto adapter = Read({.alpha = 0});
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(adapter->matrices[0].scale, 1.0f);
}

TEST_F(AdapterTest, AColumnParallelMatrixHasItsRowsOfBAndAllOfA) {
  const auto adapter = Read({});
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  const AdaptedMatrix& matrix = adapter->matrices[0];
  const AdapterSlice whole = ReadSlice(matrix, spec_, PlanOf(spec_, 0, 1));
  const AdapterSlice second = ReadSlice(matrix, spec_, PlanOf(spec_, 1, 2));
  EXPECT_EQ(second.a, whole.a);
  EXPECT_EQ(second.rows, 16u);
  EXPECT_EQ(second.b, std::vector<float>(whole.b.begin() + 16 * kRank, whole.b.end()));
}

TEST_F(AdapterTest, ARowParallelMatrixHasItsColumnsOfAAndAllOfB) {
  const auto adapter = Read({.target = "blk.0.ffn_down.weight", .cols = 64});
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  const AdaptedMatrix& matrix = adapter->matrices[0];
  const AdapterSlice whole = ReadSlice(matrix, spec_, PlanOf(spec_, 0, 1));
  const AdapterSlice second = ReadSlice(matrix, spec_, PlanOf(spec_, 1, 2));
  EXPECT_EQ(second.b, whole.b);
  ASSERT_EQ(second.cols, 32u);
  for (uint32_t row = 0; row < kRank; ++row) {
    for (uint32_t col = 0; col < 32; ++col) {
      ASSERT_EQ(second.a[row * 32 + col], whole.a[row * 64 + 32 + col]) << row << " " << col;
    }
  }
}

TEST_F(AdapterTest, DescribesTheShapeThatItReads) {
  const auto adapter = Read({.target = "blk.0.ffn_down.weight", .cols = 64});
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  const ShardPlan plan = PlanOf(spec_, 1, 2);
  const AdapterSlice shape = DescribeSlice(adapter->matrices[0], spec_, plan);
  const AdapterSlice read = ReadSlice(adapter->matrices[0], spec_, plan);
  EXPECT_EQ(shape.rank, read.rank);
  EXPECT_EQ(shape.rows, read.rows);
  EXPECT_EQ(shape.cols, read.cols);
  EXPECT_TRUE(shape.a.empty() && shape.b.empty());
}

TEST_F(AdapterTest, CountsWhatARankKeepsInWholePanels) {
  const auto adapter = Read({});
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(AdapterBytes(*adapter, spec_, PlanOf(spec_, 0, 1)), 16u * (32 + 32) * 4);
  EXPECT_EQ(AdapterBytes(*adapter, spec_, PlanOf(spec_, 1, 2)), 16u * (32 + 16) * 4);
}

TEST_F(AdapterTest, RefusesOtherFiles) {
  EXPECT_EQ(Refusal({.general_type = "model"}),
            "general.type of a LoRA adapter for this model must be \"adapter\", found \"model\"");
  EXPECT_EQ(Refusal({.adapter_type = "control_vector"}),
            "adapter.type of a LoRA adapter for this model must be \"lora\", found "
            "\"control_vector\"");
  EXPECT_EQ(Refusal({.architecture = "qwen2"}),
            "general.architecture of a LoRA adapter for this model must be \"llama\", found "
            "\"qwen2\"");
  EXPECT_EQ(Refusal({.alpha = INFINITY}), "adapter.lora.alpha is inf, it must be finite");
  EXPECT_EQ(Refusal({.activated = true}),
            "activated LoRA, which changes only what follows adapter.alora.invocation_tokens, is "
            "not supported");
  EXPECT_EQ(std::string(ReadAdapter(std::move(model_.file), spec_).status().message()),
            "general.type of a LoRA adapter for this model must be \"adapter\", found none");
}

TEST_F(AdapterTest, RefusesMatricesOfAnotherModel) {
  EXPECT_EQ(Refusal({.cols = 16}),
            "tensor \"blk.1.attn_q.weight.lora_a\": needed shape [32, 3], found [16, 3]");
  EXPECT_EQ(Refusal({.rows = 31}),
            "tensor \"blk.1.attn_q.weight.lora_b\": needed shape [3, 32], found [3, 31]");
  EXPECT_EQ(Refusal({.target = "blk.1.attn_x.weight"}),
            "tensor \"blk.1.attn_x.weight.lora_a\": the model has no tensor "
            "\"blk.1.attn_x.weight\"");
  EXPECT_EQ(Refusal({.rank = 1025}),
            "tensor \"blk.1.attn_q.weight.lora_a\" has rank 1025, at most 1024");
}

TEST_F(AdapterTest, RefusesWhatLayersCannotChange) {
  constexpr char kWhy[] =
      " is not supported, only those of attention's and dense feed-forward blocks' matrices";
  for (const std::string target :
       {"token_embd.weight", "output.weight", "blk.2.attn_q.weight", "blk.0.attn_norm.weight"}) {
    const auto adapter = Read({.target = target});
    EXPECT_EQ(adapter.status().code(), absl::StatusCode::kUnimplemented) << target;
    EXPECT_EQ(std::string(adapter.status().message()),
              "an adapter of tensor \"" + target + "\"" + kWhy);
  }
}

TEST_F(AdapterTest, RefusesHalfAPair) {
  EXPECT_EQ(Refusal({.suffix_of_b = ".lora_c"}),
            "tensor \"blk.1.attn_q.weight.lora_a\": \"blk.1.attn_q.weight.lora_b\" is missing");
  bytes_ = gguf::GgufBuilder()
               .AddString("general.type", "adapter")
               .AddString("general.architecture", "llama")
               .AddString("adapter.type", "lora")
               .AddFloat("adapter.lora.alpha", 1)
               .AddTensor("blk.0.attn_q.weight.lora_b", {1, 32}, tensor::Type::kF32,
                          Bytes(std::vector<float>(32)))
               .Build();
  auto file = gguf::File::Parse(bytes_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(std::string(ReadAdapter(*std::move(file), spec_).status().message()),
            "tensor \"blk.0.attn_q.weight.lora_b\": \"blk.0.attn_q.weight.lora_a\" is missing");
}

}  // namespace
}  // namespace tandem::model
