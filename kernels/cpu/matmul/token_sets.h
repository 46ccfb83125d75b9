// Products of as many tokens at once as have their sums in registers: a set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_TOKEN_SETS_H_
#define TANDEM_KERNELS_CPU_MATMUL_TOKEN_SETS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/read_ahead.h"

namespace tandem::kernels::cpu {

// Chunks that were unpacked, of groups of rows whose units are `step` apart. F: a chunk format.
template <class F>
struct UnpackedChunks {
  [[gnu::always_inline]] typename F::Unpacked Chunk(size_t i) const {
    return {units + i * F::kUnits, step};
  }

  const typename F::Unit* units;
  size_t step;
};

// Chunks from `first` on of `source` and of the panels `step` bytes after it, which are unpacked as
// they are multiplied.
template <class F, class Source>
struct ChunksInPlace {
  [[gnu::always_inline]] typename F::template InPlace<Source> Chunk(size_t i) const {
    return {source, step, first + i};
  }

  Source source;
  size_t step;
  size_t first;
};

// S: the instruction set (simd_*.h). F: a chunk format. Chunks: one of the above, of kGroups groups
// of rows.
template <class S, class F, class Chunks, int kGroups>
class TokenSets {
 public:
  using X = typename F::X;
  using Float = typename S::Float;

  static constexpr uint32_t kMostTokens = kGroups == 1 ? S::kTokensOfGroup : S::kTokens;

  // Tokens of a set, when `tokens` are spread evenly over as few sets as can be.
  static uint32_t SetTokens(uint32_t tokens) {
    const uint32_t sets = (tokens + kMostTokens - 1) / kMostTokens;
    return (tokens + sets - 1) / sets;
  }

  // acc[t * kGroups + g] += the products of `cols` columns and `tokens` rows of x, at most
  // kMostTokens, which are x_step apart.
  static void Add(uint32_t tokens, const Chunks& chunks, const X* x, size_t x_step, uint32_t cols,
                  Float* acc, PiecesAhead* beside) {
    kAdd[tokens](chunks, x, x_step, cols, acc, beside);
  }
  // y[t * y_stride + g * lanes ..] = the same products.
  static void Multiply(uint32_t tokens, const Chunks& chunks, const X* x, size_t x_step,
                       uint32_t cols, float* y, size_t y_stride, PiecesAhead* beside) {
    kMultiply[tokens](chunks, x, x_step, cols, y, y_stride, beside);
  }

 private:
  using AddFn = void (*)(const Chunks&, const X*, size_t, uint32_t, Float*, PiecesAhead*);
  using MultiplyFn = void (*)(const Chunks&, const X*, size_t, uint32_t, float*, size_t,
                              PiecesAhead*);

  template <int kTokens>
  static void AddSet(const Chunks& chunks, const X* x, size_t x_step, uint32_t cols, Float* acc,
                     PiecesAhead* beside) {
    Float sum[kGroups][kTokens];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) sum[g][t] = acc[t * kGroups + g];
    }
    AddChunks(chunks, x, x_step, cols, sum, beside);
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) acc[t * kGroups + g] = sum[g][t];
    }
  }

  template <int kTokens>
  static void MultiplySet(const Chunks& chunks, const X* x, size_t x_step, uint32_t cols, float* y,
                          size_t y_stride, PiecesAhead* beside) {
    Float sum[kGroups][kTokens];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) sum[g][t] = S::Zero();
    }
    AddChunks(chunks, x, x_step, cols, sum, beside);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) S::Store(y + t * y_stride + g * S::kLanes, sum[g][t]);
    }
  }

  template <int kTokens>
  [[gnu::always_inline]] static inline void AddChunks(const Chunks& chunks, const X* x,
                                                      size_t x_step, uint32_t cols,
                                                      Float (&sum)[kGroups][kTokens],
                                                      PiecesAhead* beside) {
    PiecesAhead ahead = *beside;
    for (size_t i = 0; cols > 0; ++i, x += F::kCols / F::kXCols) {
      const uint32_t count = cols < F::kCols ? cols : F::kCols;
      ahead.Fetch();
      F::Multiply(chunks.Chunk(i), x, x_step, count, sum);
      cols -= count;
    }
    *beside = ahead;
  }

  template <int kTokens>
  static constexpr AddFn AddOf() {
    if constexpr (kTokens <= kMostTokens) return &AddSet<kTokens>;
    return nullptr;
  }
  template <int kTokens>
  static constexpr MultiplyFn MultiplyOf() {
    if constexpr (kTokens <= kMostTokens) return &MultiplySet<kTokens>;
    return nullptr;
  }
  static constexpr AddFn kAdd[9] = {nullptr,    AddOf<1>(), AddOf<2>(), AddOf<3>(), AddOf<4>(),
                                    AddOf<5>(), AddOf<6>(), AddOf<7>(), AddOf<8>()};
  static constexpr MultiplyFn kMultiply[9] = {nullptr,         MultiplyOf<1>(), MultiplyOf<2>(),
                                              MultiplyOf<3>(), MultiplyOf<4>(), MultiplyOf<5>(),
                                              MultiplyOf<6>(), MultiplyOf<7>(), MultiplyOf<8>()};
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_TOKEN_SETS_H_
