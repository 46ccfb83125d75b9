// Qkv on every backend: the same bits as its parts one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/kernels/composite_problem.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using cpu::RandomMatrix;
using tensor::Type;

constexpr uint32_t kCols = 256;

// Heads that are rotated and nothing else, which a product may do at its end.
struct Rotation {
  uint32_t tokens, head_dim, value_dim, rotary_dims;
  bool halves;
  Type pages;
  std::array<Type, kMaxProjections> weights;
};

constexpr std::array kBytes = {Type::kQ8_0, Type::kQ8_0, Type::kQ8_0};

class CompositeQkvTest : public CompositeProblem {
 protected:
  static constexpr uint32_t kHeads = 6, kKvHeads = 2;

  QkvParams MakeQkv(const Rotation& r) {
    const uint32_t tokens = r.tokens;
    const uint32_t rows[] = {kHeads * r.head_dim, kKvHeads * r.head_dim, kKvHeads * r.value_dim};
    float* const x = rig_.Poisoned(size_t{tokens} * kCols);
    QkvParams params = {.norm = Norm(tokens, kCols, Rows(tokens, kCols), Rows(tokens, kCols), x),
                        .product = {x, tokens, kCols, kMaxProjections, {}},
                        .v_norm = {},
                        .q_norm = {},
                        .k_norm = {},
                        .write = {}};
    for (uint32_t i = 0; i < kMaxProjections; ++i) {
      weights_.push_back(RandomMatrix(5 + i, r.weights[i], rows[i], kCols));
      params.product.projections[i] =
          Project(weights_.back(), rig_.Poisoned(size_t{tokens} * rows[i]), /*bias=*/i != 1);
    }
    params.write = Write(r);
    params.write.q = params.product.projections[0].y;
    params.write.k = params.product.projections[1].y;
    params.write.v = params.product.projections[2].y;
    return params;
  }

 private:
  static constexpr uint32_t kBlockSize = 4;

  RopeWriteKvParams Write(const Rotation& r) {
    RopeWriteKvParams write{};
    write.tokens = r.tokens;
    write.heads = kHeads;
    // Apart, from the last slot down, and the second one in none.
    std::vector<int32_t> positions, slots;
    for (uint32_t t = 0; t < r.tokens; ++t) {
      positions.push_back(static_cast<int32_t>(7001 * t + 3));
      slots.push_back(t == 1 ? -1 : static_cast<int32_t>(r.tokens + 1 - t));
    }
    write.positions = rig_.Put(positions);
    write.slots = rig_.Put(slots);
    write.inv_freq = rig_.Put(random_.Floats(std::max(r.rotary_dims / 2, 1u), 0.001f, 1));
    write.rotary_dims = r.rotary_dims;
    write.halves = r.halves;
    write.magnitude = 1.25f;
    const uint32_t blocks = (r.tokens + 2 + kBlockSize - 1) / kBlockSize;
    const auto pages = [&](uint32_t dim) {
      const size_t values = size_t{blocks} * kKvHeads * kBlockSize * dim;
      return rig_.Put(random_.Floats(tensor::RowBytes(r.pages, values) / sizeof(float)));
    };
    write.pages = {.type = r.pages,
                   .k = pages(r.head_dim),
                   .v = pages(r.value_dim),
                   .num_blocks = blocks,
                   .block_size = kBlockSize,
                   .kv_heads = kKvHeads,
                   .head_dim = r.head_dim,
                   .value_dim = r.value_dim};
    return write;
  }

  std::vector<Matrix> weights_;  // some backends read them where they are
};

// Heads of several lengths, whose norms kernels may take along or not.
TEST_P(CompositeQkvTest, NormsHeads) {
  constexpr uint32_t kFewTokens = 3;
  for (const uint32_t dim : {62u, 64u, 256u, 516u}) {
    QkvParams params = MakeQkv({.tokens = kFewTokens,
                                .head_dim = dim,
                                .value_dim = dim,
                                .rotary_dims = dim,
                                .halves = false,
                                .pages = Type::kF32,
                                .weights = {Type::kQ8_0, Type::kQ8_0, Type::kF32}});
    float* const q = params.write.q;
    float* const k = params.write.k;
    float* const v = params.product.projections[2].y;
    params.q_norm = Norm(kFewTokens * kHeads, dim, q, nullptr, q);
    params.k_norm = Norm(kFewTokens * kKvHeads, dim, k, nullptr, k);
    ExpectSameBitsAsParts(params);
    params.v_norm = Norm(kFewTokens * kKvHeads, dim, v, nullptr, v);
    ExpectSameBitsAsParts(params);
    // Queries that only their norm changes.
    params.write.rotary_dims = 0;
    ExpectSameBitsAsParts(params);
    // Values out of the keys, before their norm.
    params.write.rotary_dims = dim;
    params.product.num_projections = 2;
    params.v_norm = Norm(kFewTokens * kKvHeads, dim, k, nullptr, v);
    ExpectSameBitsAsParts(params);
  }
}

// Norms with products that could rotate heads without them.
TEST_P(CompositeQkvTest, NormsSomeHeads) {
  constexpr uint32_t kDim = 64, kFewTokens = 2;
  const Rotation rotation = {kFewTokens, kDim, kDim, kDim, true, Type::kF16, kBytes};
  QkvParams q = MakeQkv(rotation), k = MakeQkv(rotation), v = MakeQkv(rotation);
  q.q_norm = Norm(kFewTokens * kHeads, kDim, q.write.q, nullptr, q.write.q);
  k.k_norm = Norm(kFewTokens * kKvHeads, kDim, k.write.k, nullptr, k.write.k);
  float* const values = v.product.projections[2].y;
  v.v_norm = Norm(kFewTokens * kKvHeads, kDim, values, nullptr, values);
  for (const QkvParams& params : {q, k, v}) ExpectSameBitsAsParts(params);
}

TEST_P(CompositeQkvTest, RotatesHeads) {
  constexpr std::array kMixed = {Type::kQ4_K, Type::kQ4_K, Type::kQ6_K};
  for (const uint32_t tokens : {1u, 2u, 9u, 33u}) {
    for (const bool halves : {true, false}) {
      for (const Rotation& r : {
               Rotation{tokens, 64, 64, 64, halves, Type::kF16, kBytes},
               Rotation{tokens, 128, 128, 128, halves, Type::kBF16, kMixed},
               Rotation{tokens, 192, 64, 64, halves, Type::kF32, kBytes},   // a part of a head
               Rotation{tokens, 128, 36, 128, halves, Type::kF16, kMixed},  // narrow values
               Rotation{tokens, 64, 64, 0, halves, Type::kF16, kBytes},     // nothing rotates
               Rotation{tokens, 80, 80, 80, halves, Type::kF16, kBytes},    // heads across tiles
               Rotation{tokens, 36, 18, 12, halves, Type::kF16, kBytes},    // rows that end in one
           }) {
        SCOPED_TRACE(testing::Message() << tokens << " tokens, " << r.rotary_dims << " of "
                                        << r.head_dim << (halves ? " in halves" : ""));
        ExpectSameBitsAsParts(MakeQkv(r));
      }
    }
  }
}

// A product can't: heads that end inside a tile, quantised pages, types apart, no quantised types.
TEST_P(CompositeQkvTest, RotatesOtherHeads) {
  constexpr std::array kApart = {Type::kQ8_0, Type::kQ8_0, Type::kQ6_K};
  constexpr std::array kHalves = {Type::kF16, Type::kF16, Type::kF16};
  for (const uint32_t tokens : {1u, 9u}) {
    for (const Rotation& r : {
             Rotation{tokens, 96, 64, 32, true, Type::kF16, kBytes},
             Rotation{tokens, 64, 64, 64, true, Type::kQ8_0, kBytes},
             Rotation{tokens, 64, 64, 64, true, Type::kF16, kApart},
             Rotation{tokens, 64, 64, 64, true, Type::kF16, kHalves},
         }) {
      SCOPED_TRACE(testing::Message() << tokens << " tokens, heads of " << r.head_dim);
      ExpectSameBitsAsParts(MakeQkv(r));
    }
  }
}

TANDEM_INSTANTIATE_BACKENDS(CompositeQkvTest);

}  // namespace
}  // namespace tandem::kernels
