// Products of as many tokens at once as have their sums in registers: a set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_TOKEN_SETS_H_
#define TANDEM_KERNELS_CPU_MATMUL_TOKEN_SETS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/matmul/product.h"

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

// Of at most `most` tokens each.
[[gnu::always_inline]] inline uint32_t NumSets(uint32_t tokens, uint32_t most) {
  return (tokens + most - 1) / most;
}

// Calls visit(token, count) for each set of [begin, end): as few sets as can be, of sizes that
// differ by one at most, since a small set takes nearly as long as a large one.
template <class Visit>
[[gnu::always_inline]] inline void ForEachSet(uint32_t begin, uint32_t end, uint32_t most,
                                              const Visit& visit) {
  for (uint32_t sets = NumSets(end - begin, most); sets > 0; --sets) {
    const uint32_t count = (end - begin + sets - 1) / sets;
    visit(begin, count);
    begin += count;
  }
}

// S: the instruction set (simd_*.h). F: a chunk format. Chunks: one of the above, of kGroups groups
// of rows. A set has at most kMost tokens. Ahead: a class of read_ahead.h.
template <class S, class F, class Chunks, int kGroups, int kMost, class Ahead>
class TokenSets {
 public:
  using X = typename F::X;
  using Float = typename S::Float;

  static constexpr int kMostTokens = kMost;

  // acc[t * kGroups + g] += the products of `cols` columns and `tokens` rows of x, which are x_step
  // apart.
  static void Add(uint32_t tokens, const Chunks& chunks, const X* x, size_t x_step, uint32_t cols,
                  Float* acc, Ahead* beside) {
    kAdd[tokens](chunks, x, x_step, cols, acc, beside);
  }
  // y[t * y_stride + g * lanes ..] = the same products.
  static void Multiply(uint32_t tokens, const Chunks& chunks, const X* x, size_t x_step,
                       uint32_t cols, float* y, size_t y_stride, Ahead* beside) {
    kMultiply[tokens](chunks, x, x_step, cols, y, y_stride, beside);
  }

 private:
  using AddFn = void (*)(const Chunks&, const X*, size_t, uint32_t, Float*, Ahead*);
  using MultiplyFn = void (*)(const Chunks&, const X*, size_t, uint32_t, float*, size_t, Ahead*);

  template <int kTokens>
  static void AddSet(const Chunks& chunks, const X* x, size_t x_step, uint32_t cols, Float* acc,
                     Ahead* beside) {
    Float sum[kGroups][kTokens];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) sum[g][t] = acc[t * kGroups + g];
    }
    AddChunks(chunks, x, x_step, cols, sum, beside);
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) acc[t * kGroups + g] = sum[g][t];
    }
  }

  template <int kTokens>
  static void MultiplySet(const Chunks& chunks, const X* x, size_t x_step, uint32_t cols, float* y,
                          size_t y_stride, Ahead* beside) {
    FetchOutput<kTokens>(y, y_stride);
    Float sum[kGroups][kTokens];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) sum[g][t] = S::Zero();
    }
    AddChunks(chunks, x, x_step, cols, sum, beside);
#pragma GCC unroll 12
    for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) S::Store(y + t * y_stride + g * S::kLanes, sum[g][t]);
    }
  }

  // Stores that miss the caches would hold up the next set's products. A hint to write would need
  // more than the instruction sets that files are compiled for.
  template <int kTokens>
  [[gnu::always_inline]] static inline void FetchOutput(const float* y, size_t y_stride) {
    for (int t = 0; t < kTokens; ++t) {
      for (int g = 0; g < kGroups; ++g) __builtin_prefetch(y + t * y_stride + g * S::kLanes, 0, 3);
    }
  }

  template <int kTokens>
  [[gnu::always_inline]] static inline void AddChunks(const Chunks& chunks, const X* x,
                                                      size_t x_step, uint32_t cols,
                                                      Float (&sum)[kGroups][kTokens],
                                                      Ahead* beside) {
    Ahead ahead = *beside;
    for (size_t i = 0; cols > 0; ++i, x += F::kCols / F::kXCols) {
      const uint32_t count = cols < F::kCols ? cols : F::kCols;
      const auto fetch = [&]() __attribute__((always_inline)) { ahead.Fetch(); };
      F::Multiply(chunks.Chunk(i), x, x_step, count, fetch, sum);
      cols -= count;
    }
    *beside = ahead;
  }

  // Indexed by tokens.
  template <int... kBefore>
  static constexpr std::array<AddFn, kMost + 1> Adds(std::integer_sequence<int, kBefore...>) {
    return {nullptr, &AddSet<kBefore + 1>...};
  }
  template <int... kBefore>
  static constexpr std::array<MultiplyFn, kMost + 1> Multiplies(
      std::integer_sequence<int, kBefore...>) {
    return {nullptr, &MultiplySet<kBefore + 1>...};
  }
  static constexpr auto kAdd = Adds(std::make_integer_sequence<int, kMost>());
  static constexpr auto kMultiply = Multiplies(std::make_integer_sequence<int, kMost>());
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_TOKEN_SETS_H_
