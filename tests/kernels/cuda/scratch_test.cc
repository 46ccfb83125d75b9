// No step needs more scratch than a larger one: the plan pass encodes the largest steps alone
// (worker/runtime/planner.cc). Shapes of real models, every number of tokens.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/tensor/type.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

using tensor::Type;

constexpr uint32_t kMostTokens = 16384;
constexpr uint32_t kMostSeqs = 1024;
constexpr uint32_t kMostLogitRows = 1024;

// A plan pass launches nothing: addresses need only be there and aligned.
template <typename T>
T* Somewhere() {
  static constexpr uintptr_t kAddress = uintptr_t{1} << 20;
  return reinterpret_cast<T*>(kAddress);
}

Weight WeightOf(Type type, uint32_t rows, uint32_t cols) {
  return {.type = type,
          .data = Somewhere<std::byte>(),
          .rows = rows,
          .cols = cols,
          .row_stride_bytes = tensor::RowBytes(type, cols),
          .col_begin = 0,
          .col_count = cols};
}

MatMulParams ProductOf(uint32_t tokens, uint32_t cols, uint32_t rows, std::vector<Type> types) {
  MatMulParams product = {Somewhere<float>(), tokens, cols, 0, {}};
  for (const Type type : types) {
    product.projections[product.num_projections++] = {WeightOf(type, rows, cols), nullptr,
                                                      Somewhere<float>(), rows};
  }
  return product;
}

struct ExpertShape {
  const char* model;
  uint32_t hidden, inner, experts, top_k;
  Type blocks = Type::kQ4_K;
};

constexpr ExpertShape kExperts[] = {{"Qwen3-30B-A3B", 2048, 768, 128, 8},
                                    {"Qwen3-Next-80B-A3B", 2048, 512, 512, 10},
                                    {"Mixtral-8x7B", 4096, 14336, 8, 2},
                                    {"gpt-oss-20b", 2880, 2880, 32, 4, Type::kMXFP4},
                                    {"DeepSeek-V3, 8 ranks", 7168, 256, 256, 8},
                                    {"Llama 4 Scout", 5120, 8192, 16, 1},
                                    {"a small one", 256, 256, 256, 8}};

ExpertMatMulParams ExpertsOf(const ExpertShape& shape, Type type, bool down, uint32_t tokens) {
  ExpertMatMulParams p{};
  const uint32_t cols = down ? shape.inner : shape.hidden;
  const uint32_t rows = down ? shape.hidden : shape.inner;
  p.x = Somewhere<float>();
  p.tokens = tokens;
  p.x_stride = cols;
  p.top_k = shape.top_k;
  p.ids = Somewhere<int32_t>();
  p.weights = down ? Somewhere<float>() : nullptr;
  p.num_experts = shape.experts;
  p.num_projections = down ? 1 : 2;
  for (uint32_t i = 0; i < p.num_projections; ++i) {
    Weight weight = WeightOf(type, rows, cols);
    weight.count = shape.experts;
    weight.matrix_stride_bytes = rows * weight.row_stride_bytes;
    p.projections[i] = {weight, nullptr, 0, Somewhere<float>()};
  }
  return p;
}

struct AttentionShape {
  const char* model;
  uint32_t heads, kv_heads, dim, window;
};

constexpr AttentionShape kAttention[] = {{"Llama 3 8B", 32, 8, 128, 0},
                                         {"Qwen3-Next", 16, 2, 256, 0},
                                         {"gpt-oss-20b", 64, 8, 64, 128},
                                         {"Gemma 3", 8, 4, 256, 1024}};

constexpr uint32_t kContext = 131072;

AttentionParams AttentionOf(const AttentionShape& shape, Type pages, uint32_t tokens,
                            uint32_t num_seqs, uint32_t context = kContext) {
  AttentionParams p{};
  p.q = Somewhere<float>();
  p.tokens = tokens;
  p.num_seqs = num_seqs;
  p.max_query_len = tokens - num_seqs + 1;
  p.max_context_len = context;
  p.pages = {pages, Somewhere<void>(), Somewhere<void>(), 64,
             16,    shape.kv_heads,    shape.dim,         shape.dim};
  p.heads = shape.heads;
  p.heads_per_kv = shape.heads / shape.kv_heads;
  p.window = shape.window;
  p.out = Somewhere<float>();
  return p;
}

class ScratchTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(stream_.Create(), cudaSuccess); }

  template <typename Params>
  size_t ScratchOf(const Params& params) {
    stream_.Begin(/*planning=*/true);
    if constexpr (requires { EncodeOp(stream_, *gemm_, params); }) {
      EncodeOp(stream_, *gemm_, params);
    } else {
      EncodeOp(stream_, params);
    }
    EXPECT_EQ(stream_.error(), "");
    return stream_.wanted_scratch();
  }

  // Of of(1), of(2), ..., of(most).
  void ExpectGrowing(const std::string& what, uint32_t most, auto of) {
    size_t before = 0;
    for (uint32_t n = 1; n <= most; ++n) {
      const size_t bytes = ScratchOf(of(n));
      ASSERT_LE(before, bytes) << what << ": " << n - 1 << " need more than " << n;
      before = bytes;
    }
  }

  Stream stream_;
  const std::unique_ptr<DenseGemm> gemm_ = MakeDenseGemm().value();
};

TEST_F(ScratchTest, OfExperts) {
  for (const ExpertShape& shape : kExperts) {
    for (const Type type : {shape.blocks, Type::kBF16, Type::kF32}) {
      for (const bool down : {false, true}) {
        ExpectGrowing(std::string(shape.model) + " " + std::string(tensor::Name(type)) +
                          (down ? " down" : " up"),
                      kMostTokens,
                      [&](uint32_t tokens) { return ExpertsOf(shape, type, down, tokens); });
      }
    }
  }
}

TEST_F(ScratchTest, OfProducts) {
  const std::vector<Type> mixtures[] = {{Type::kQ4_K},
                                        {Type::kBF16},
                                        {Type::kF16},
                                        {Type::kF32},
                                        {Type::kQ4_K, Type::kF16},
                                        {Type::kBF16, Type::kF32}};
  for (const auto& types : mixtures) {
    for (const uint32_t cols : {1024u, 4096u, 14336u}) {
      ExpectGrowing(std::string(tensor::Name(types[0])), kMostTokens,
                    [&](uint32_t tokens) { return ProductOf(tokens, cols, 4096, types); });
    }
  }
}

TEST_F(ScratchTest, OfFeedForwards) {
  for (const Type up : {Type::kQ4_K, Type::kBF16, Type::kF16}) {
    for (const Type down : {Type::kQ6_K, Type::kBF16, Type::kF32}) {
      ExpectGrowing(std::string(tensor::Name(up)), kMostTokens, [&](uint32_t tokens) {
        FeedForwardParams params{};
        params.norm =
            RmsNormParams{Somewhere<float>(), nullptr, Somewhere<float>(), 1e-6f, tokens, 4096,
                          Somewhere<float>()};
        params.up = ProductOf(tokens, 4096, 14336, {up, up});
        params.activate = {.function = Activation::kSilu,
                           .gate = Somewhere<float>(),
                           .up = Somewhere<float>(),
                           .rows = tokens,
                           .cols = 14336,
                           .out = Somewhere<float>()};
        params.down = ProductOf(tokens, 14336, 4096, {down});
        return params;
      });
    }
  }
}

TEST_F(ScratchTest, OfHeadsOfLatentAttention) {
  for (const bool transposed : {false, true}) {
    ExpectGrowing("DeepSeek-V3", kMostTokens, [&](uint32_t tokens) {
      HeadMatMulParams p{};
      p.tokens = tokens;
      p.heads = 128;
      p.weight = WeightOf(Type::kQ8_0, 128 * 256, 512);
      p.rows_per_head = 256;
      p.row_count = 128;
      p.transposed = transposed;
      return p;
    });
  }
}

TEST_F(ScratchTest, OfDecodeSteps) {
  for (const AttentionShape& shape : kAttention) {
    for (const Type type : {Type::kF16, Type::kBF16, Type::kQ8_0, Type::kF32}) {
      ExpectGrowing(shape.model, kMostSeqs,
                    [&](uint32_t seqs) { return AttentionOf(shape, type, seqs, seqs); });
      ExpectGrowing(shape.model, kMostSeqs, [&](uint32_t seqs) {
        return AttentionMatMulParams{AttentionOf(shape, type, seqs, seqs),
                                     ProductOf(seqs, shape.heads * shape.dim, 4096, {Type::kQ4_K})};
      });
    }
  }
}

// The largest step has as many sequences and as many tokens as there may be.
TEST_F(ScratchTest, OfStepsWithPrompts) {
  for (const AttentionShape& shape : kAttention) {
    for (const Type type : {Type::kF16, Type::kQ8_0, Type::kF32}) {
      AttentionParams largest = AttentionOf(shape, type, kMostTokens, kMostSeqs);
      largest.max_query_len = kMostTokens;
      const size_t planned = ScratchOf(largest);
      for (uint32_t seqs = 1; seqs <= kMostSeqs; seqs += 31) {
        for (uint32_t tokens = seqs; tokens <= kMostTokens; tokens += 97) {
          for (const uint32_t context : {100u, 16384u, 100000u, kContext}) {
            ASSERT_LE(ScratchOf(AttentionOf(shape, type, tokens, seqs, context)), planned)
                << shape.model << ", " << tokens << " tokens of " << seqs << " sequences";
          }
        }
      }
    }
  }
}

TEST_F(ScratchTest, OfLogits) {
  for (const uint32_t vocab : {2048u, 151936u}) {
    ExpectGrowing("Sample", kMostLogitRows, [&](uint32_t rows) {
      SampleParams p{};
      p.vocab = vocab;
      p.count = rows;
      return p;
    });
    ExpectGrowing("LogProbs", kMostLogitRows, [&](uint32_t rows) {
      LogProbsParams p{};
      p.vocab = vocab;
      p.count = rows;
      p.out_count = 21 * rows;
      return p;
    });
  }
}

}  // namespace
}  // namespace tandem::kernels::cuda
