// Composite ops on every backend: the same bits as their parts one after the other.
#include <gtest/gtest.h>

#include <iterator>
#include <utility>
#include <vector>

#include "tests/kernels/composite_problem.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using cpu::RandomMatrix;
using tensor::Type;

constexpr uint32_t kCols = 256;
constexpr uint32_t kRows = 83;
constexpr uint32_t kInner = 256;  // of a feed-forward block
constexpr uint32_t kFewTokens = 3;
// Where kernels of some backend change, and beside it.
constexpr uint32_t kTokens[] = {1, 2, 8, 9, 17, 33, 128, 129};

constexpr Activation kFunctions[] = {Activation::kSilu, Activation::kGeluTanh,
                                     Activation::kClampedSwiGlu, Activation::kSigmoid};

class CompositeTest : public CompositeProblem {
 protected:
  // More than the kernels for few tokens take.
  uint32_t many_tokens() const { return GetParam().slow() ? 9 : 70; }

  // Columns [begin, begin + count) of the matrix, as a rank has them.
  Projection ProjectColumns(const Matrix& matrix, uint32_t begin, uint32_t count, float* y) {
    Weight weight = matrix.weight();
    weight.col_begin = begin;
    weight.col_count = count;
    return {Place(weight), nullptr, y, matrix.rows};
  }
  NormParams LayerNorm(uint32_t rows, uint32_t dim, float* residual, const float* add, float* out) {
    return LayerNormParams{.residual = residual,
                           .add = add,
                           .weight = rig_.Put(random_.Floats(dim)),
                           .bias = rig_.Put(random_.Floats(dim)),
                           .epsilon = 1e-6f,
                           .rows = rows,
                           .dim = dim,
                           .out = out};
  }
  // Without its product's projections. Both kinds of norms have their turn.
  NormMatMulParams MakeNormMatMul(uint32_t tokens, uint32_t dim, uint32_t projections) {
    float* const x = rig_.Poisoned(size_t{tokens} * dim);
    float* const residual = Rows(tokens, dim);
    const float* const add = Rows(tokens, dim);
    layer_norm_ = !layer_norm_;
    return {.norm = layer_norm_ ? LayerNorm(tokens, dim, residual, add, x)
                                : Norm(tokens, dim, residual, add, x),
            .product = {x, tokens, dim, projections, {}}};
  }

  // Without its products' projections.
  FeedForwardParams MakeFeedForward(uint32_t tokens, bool gated, uint32_t inner = kInner) {
    float* const x = rig_.Poisoned(size_t{tokens} * kCols);
    gate_ = rig_.Poisoned(size_t{tokens} * inner);
    up_ = rig_.Poisoned(size_t{tokens} * inner);
    return {.norm = Norm(tokens, kCols, Rows(tokens, kCols), Rows(tokens, kCols), x),
            .up = {x, tokens, kCols, gated ? 2u : 1u, {}},
            .activate = {Activation::kSilu, gate_, gated ? up_ : nullptr, tokens, inner, gate_},
            .down = {}};
  }

  bool layer_norm_ = false;  // the last one of MakeNormMatMul
  float* gate_ = nullptr;    // of a feed-forward block
  float* up_ = nullptr;
};

TEST_P(CompositeTest, FeedForward) {
  // Types that share kernels and types that do not, of what comes before and after the activation.
  for (const auto& [up_type, down_type] : {std::pair(Type::kQ8_0, Type::kQ8_0),
                                           {Type::kQ4_K, Type::kBF16},
                                           {Type::kF32, Type::kQ6_K},
                                           {Type::kBF16, Type::kF32}}) {
    const Matrix gate = RandomMatrix(1, Type::kQ8_0, kInner, kCols);
    const Matrix up = RandomMatrix(2, up_type, kInner, kCols);
    const Matrix down = RandomMatrix(8, down_type, kRows, kInner);
    for (const uint32_t tokens : {1u, kFewTokens, many_tokens()}) {
      for (const bool gated : {true, false}) {
        FeedForwardParams params = MakeFeedForward(tokens, gated);
        params.up.projections[0] = Project(gated ? gate : up, gate_, true);
        if (gated) params.up.projections[1] = Project(up, up_, false);
        MatMulParams product = {gate_, tokens, kInner, 1, {}};
        product.projections[0] = Project(down, rig_.Poisoned(size_t{tokens} * kRows), true);
        params.down = product;
        ExpectSameBitsAsParts(params);
        params.down = MatMulAddParams{
            .product = product,
            .add = {Rows(tokens, kRows), product.projections[0].y, nullptr, tokens, kRows}};
        ExpectSameBitsAsParts(params);
      }
    }
  }
}

// Every number of tokens; activation functions and what follows the product have their turn.
TEST_P(CompositeTest, FeedForwardInBytes) {
  const Matrix gate = RandomMatrix(1, Type::kQ4_K, kInner, kCols);
  const Matrix up = RandomMatrix(2, Type::kQ6_K, kInner, kCols);
  const Matrix down = RandomMatrix(8, Type::kQ6_K, kRows, kInner);
  size_t turn = 0;
  for (const uint32_t tokens : kTokens) {
    FeedForwardParams params = MakeFeedForward(tokens, true);
    params.up.projections = {Project(gate, gate_, true), Project(up, up_, false)};
    params.activate.function = kFunctions[turn++ % std::size(kFunctions)];
    MatMulParams product = {gate_, tokens, kInner, 1, {}};
    product.projections[0] = Project(down, rig_.Poisoned(size_t{tokens} * kRows), true);
    params.down = product;
    if (turn % 3 == 0) {
      params.down = MatMulAddParams{
          .product = product,
          .add = {Rows(tokens, kRows), product.projections[0].y, nullptr, tokens, kRows}};
    }
    ExpectSameBitsAsParts(params);
  }
}

// Gate and up of one type, of which a backend may compute both at once: every type and number of
// tokens, and `inner` of several blocks and of part of one.
TEST_P(CompositeTest, FeedForwardOfOneType) {
  size_t turn = 0;
  for (const Type type : cpu::Types()) {
    for (const uint32_t inner : {147u, 160u}) {
      const Matrix gate = RandomMatrix(1, type, inner, kCols);
      const Matrix up = RandomMatrix(2, type, inner, kCols);
      const Matrix down = RandomMatrix(8, Type::kQ8_0, 3, 224);
      for (const uint32_t tokens : {1u, 2u, 3u, 4u, 5u, 9u, 16u, 17u, 40u}) {
        FeedForwardParams params = MakeFeedForward(tokens, true, inner);
        const bool bias = turn % 3 != 0;
        params.up.projections = {Project(gate, gate_, bias), Project(up, up_, !bias)};
        params.activate.function = kFunctions[turn++ % std::size(kFunctions)];
        MatMulParams product = {gate_, tokens, inner, 1, {}};
        // Whole groups before those of this rank, and part of one.
        const uint32_t begin = turn % 5 == 0 ? 48 : turn % 2 * 32;
        product.projections[0] =
            ProjectColumns(down, begin, inner, rig_.Poisoned(size_t{tokens} * 3));
        params.down = product;
        if (turn % 2 == 0) {
          params.down = MatMulAddParams{
              .product = product,
              .add = {Rows(tokens, 3), product.projections[0].y, nullptr, tokens, 3}};
        }
        ExpectSameBitsAsParts(params);
      }
    }
  }
}

// What smaller steps need beside the rows of `down` fits in what the largest one does.
TEST_P(CompositeTest, APlanOfTheLargestFeedForwardCoversSmallerOnes) {
  const auto plan = [&](uint32_t tokens) {
    constexpr Weight kUp = {.type = Type::kQ4_K, .rows = 512, .cols = 256, .col_count = 256};
    constexpr Weight kDown = {.type = Type::kQ6_K, .rows = 256, .cols = 512, .col_count = 512};
    float gate = 0, up = 0;
    FeedForwardParams sizes{};
    sizes.up = {nullptr, tokens, 256, 2, {}};
    sizes.up.projections = {Projection{kUp, nullptr, &gate, 512}, {kUp, nullptr, &up, 512}};
    sizes.activate = {Activation::kSilu, &gate, &up, tokens, 512, &gate};
    MatMulParams product = {&gate, tokens, 512, 1, {}};
    product.projections[0] = {kDown, nullptr, nullptr, 256};
    sizes.down = product;
    rig_.backend().BeginEncode(EncodeMode::kPlan);
    rig_.backend().Encode(sizes);
    return rig_.backend().FinishPlan().value();
  };
  const auto largest = plan(2000);
  for (const uint32_t tokens : {256u, 64u, 1u}) EXPECT_EQ(plan(tokens), largest) << tokens;
}

// A rank's columns of `down` may begin within a block.
TEST_P(CompositeTest, FeedForwardOfPartsOfBlocks) {
  for (const uint32_t count : {83u, 84u}) {
    const Matrix gate = RandomMatrix(1, Type::kQ8_0, count, kCols);
    const Matrix up = RandomMatrix(2, Type::kQ8_0, count, kCols);
    for (const Type type : {Type::kQ8_0, Type::kBF16}) {
      const Matrix down = RandomMatrix(8, type, kRows, kInner);
      for (const uint32_t begin : {48u, 50u, 64u}) {
        for (const uint32_t tokens : {1u, kFewTokens, many_tokens()}) {
          FeedForwardParams params = MakeFeedForward(tokens, true, count);
          params.up.projections = {Project(gate, gate_, true), Project(up, up_, false)};
          MatMulParams product = {gate_, tokens, count, 1, {}};
          product.projections[0] =
              ProjectColumns(down, begin, count, rig_.Poisoned(size_t{tokens} * kRows));
          params.down = product;
          ExpectSameBitsAsParts(params);
        }
      }
    }
  }
}

TEST_P(CompositeTest, MatMulAdd) {
  for (const Type type : {Type::kQ8_0, Type::kF32}) {
    const Matrix matrix = RandomMatrix(3, type, kRows, kCols);
    for (const uint32_t tokens : {1u, kFewTokens, many_tokens()}) {
      for (const bool gated : {true, false}) {
        float* const product = rig_.Poisoned(size_t{tokens} * kRows);
        MatMulAddParams params = {.product = {Rows(tokens, kCols), tokens, kCols, 1, {}},
                                  .add = {Rows(tokens, kRows), product,
                                          gated ? Rows(tokens, 1) : nullptr, tokens, kRows}};
        params.product.projections[0] = Project(matrix, product, !gated);
        ExpectSameBitsAsParts(params);
      }
    }
  }
}

// Projections that read floats and ones that read bytes, of the same rows.
TEST_P(CompositeTest, NormMatMul) {
  const std::vector<Type> types = cpu::Types();
  for (size_t first = 0; first < types.size(); first += kMaxProjections) {
    std::vector<Matrix> matrices;
    for (size_t i = 0; i < kMaxProjections; ++i) {
      const Type type = types[(first + i) % types.size()];
      matrices.push_back(RandomMatrix(static_cast<uint32_t>(first + i), type, 35, kCols));
    }
    for (const uint32_t tokens : kTokens) {
      NormMatMulParams params = MakeNormMatMul(tokens, kCols, kMaxProjections);
      for (size_t i = 0; i < kMaxProjections; ++i) {
        params.product.projections[i] =
            Project(matrices[i], rig_.Poisoned(size_t{tokens} * 35), i == 0);
      }
      ExpectSameBitsAsParts(params);
    }
  }
}

TEST_P(CompositeTest, NormMatMulOfBytesAlone) {
  for (const Type type : {Type::kQ8_0, Type::kQ4_K}) {
    const Matrix matrix = RandomMatrix(4, type, kRows, kCols);
    for (const uint32_t tokens : kTokens) {
      NormMatMulParams params = MakeNormMatMul(tokens, kCols, 1);
      params.product.projections[0] = Project(matrix, rig_.Poisoned(size_t{tokens} * kRows), false);
      ExpectSameBitsAsParts(params);
    }
  }
}

// Rows of a few values, of part of a block, and of as many as a norm's kernels tell apart.
TEST_P(CompositeTest, NormMatMulOfRowsOfAllLengths) {
  for (const uint32_t dim : {32u, 83u, 100u, 512u, 2048u, 4096u, 8192u, 16384u, 16388u}) {
    const uint32_t cols = (dim + 31) / 32 * 32;
    const Matrix matrix = RandomMatrix(4, Type::kQ8_0, 3, cols);
    for (const uint32_t tokens : {2u, 5u}) {
      NormMatMulParams params = MakeNormMatMul(tokens, dim, 1);
      params.product.projections[0] =
          ProjectColumns(matrix, 0, dim, rig_.Poisoned(size_t{tokens} * 3));
      ExpectSameBitsAsParts(params);
    }
  }
}

// Rows too long for a norm's registers, rounded to BF16.
TEST_P(CompositeTest, NormMatMulOfLongRowsInBf16) {
  constexpr uint32_t kDim = 16392;
  const Matrix matrix = RandomMatrix(4, Type::kBF16, 3, kDim);
  for (int i = 0; i < 2; ++i) {  // so that both norms meet it
    NormMatMulParams params = MakeNormMatMul(9, kDim, 1);
    params.product.projections[0] = Project(matrix, rig_.Poisoned(size_t{9} * 3), false);
    ExpectSameBitsAsParts(params);
  }
}

TEST_P(CompositeTest, NormMatMulOfPartsOfBlocks) {
  for (const Type type : {Type::kQ8_0, Type::kQ6_K, Type::kBF16}) {
    const Matrix matrix = RandomMatrix(4, type, kRows, kCols);
    for (const uint32_t begin : {48u, 52u, 64u, 160u}) {
      for (const uint32_t tokens : {1u, 9u, 2u}) {  // three, so that both norms meet each
        NormMatMulParams params = MakeNormMatMul(tokens, 84, 1);
        params.product.projections[0] =
            ProjectColumns(matrix, begin, 84, rig_.Poisoned(size_t{tokens} * kRows));
        ExpectSameBitsAsParts(params);
      }
    }
  }
}

TANDEM_INSTANTIATE_BACKENDS(CompositeTest);

}  // namespace
}  // namespace tandem::kernels
