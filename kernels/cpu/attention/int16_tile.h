// Products of tiles of Int16Products with blocks of query rows: integer_tile.h.
//
// Integer sums are exact, so a score is a chain over blocks of 32 dimensions; an output value is a
// chain over tiles of 64 positions.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_INT16_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_INT16_TILE_H_

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/int16.h"
#include "kernels/cpu/attention/integers.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// The sums of a block's rows, two vectors of each, are in registers; a wide block is multiplied in
// two parts.
template <int R>
inline constexpr bool kInParts = R > kBlockRows;
template <int R>
inline constexpr int kParts = kInParts<R> ? 2 : 1;

inline constexpr int kVecs = 2;
inline constexpr uint32_t kBlockFours = kBlockValues / 4;

// sums[r][c] += words of `vec` times word of `one(r)`.
template <int R, typename One>
__attribute__((always_inline)) inline void AddWords(const __m256i (&vec)[kVecs], One one,
                                                    Ints (&sums)[R][kVecs]) {
  for (int r = 0; r < R; ++r) {
    const __m256i word = _mm256_castps_si256(Set1(one(r)));
    for (int c = 0; c < kVecs; ++c)
      sums[r][c] += reinterpret_cast<Ints>(_mm256_madd_epi16(vec[c], word));
  }
}

// sums[r][c] += one of the words of dimensions of k, for fours of them in [begin, end), times that
// of R rows of q that lie `stride` apart.
template <int kHalf, int R, typename Column>
__attribute__((always_inline)) inline void AddFours(const float* q, uint32_t stride,
                                                    const Column& k, uint32_t begin, uint32_t end,
                                                    Ints (&sums)[R][kVecs]) {
#pragma GCC unroll 2
  for (uint32_t four = begin; four < end; ++four) {
    const float* const word = q + 2 * four + kHalf;
    const __m256i vec[kVecs] = {k.template Word<kHalf>(four, 0), k.template Word<kHalf>(four, 1)};
    AddWords(
        vec, [&](int r) { return word[static_cast<uint32_t>(r) * stride]; }, sums);
  }
}

// scores[r * 64 + i] = q[r] . k[:, i] for R rows of q that lie `stride` apart; one of `kRowParts`.
template <int R, int kRowParts = kParts<R>, typename Keys, typename Ahead>
inline void ScoreRows(const float* q, uint32_t stride, uint32_t dim, const Keys& keys,
                      float* scores, Ahead& ahead) {
  if constexpr (kInParts<R>) {
    constexpr int kFirst = kFirstPart<R>;
    ScoreRows<kFirst, kRowParts>(q, stride, dim, keys, scores, ahead);
    return ScoreRows<R - kFirst, kRowParts>(q + size_t{kFirst} * stride, stride, dim, keys,
                                            scores + kFirst * kTilePositions, ahead);
  }
  // Fours of dimensions between two calls of Fetch: the passes over K call it once per line of V.
  constexpr uint32_t kStretch = kTilePositions / (kVecs * kLanes) * kRowParts;
  const uint32_t blocks = dim / kBlockValues;
  const float* const steps = q + dim / 2;
  for (int32_t i = 0; i < kTilePositions; i += kVecs * kLanes) {
    const auto k = keys(i);
    for (uint32_t b = 0; b < blocks; ++b) {
      Ints sums[R][kVecs] = {};
      for (uint32_t four = b * kBlockFours; four < (b + 1) * kBlockFours; four += kStretch) {
        ahead.Fetch();
        AddFours<0>(q, stride, k, four, four + kStretch, sums);
        AddFours<1>(q, stride, k, four, four + kStretch, sums);
      }
      AddBlockScores(
          sums, [&](int c) { return k.Scales(b, c); }, b, blocks, steps, stride, scores + i);
    }
  }
}

// Weights of R rows times the scales of V, as pairs of positions in steps.
template <int R>
struct ScaledWeights {
  alignas(64) float pairs[R * kTilePairs];
  float steps[R];  // NaN or infinite if a product is

  // Zero outside [begin, end), where scales may be anything; within, rows that were written have
  // none below zero.
  void Set(int r, const float* weights, const float* scales, int32_t begin, int32_t end) {
    constexpr int kCount = kTilePositions / kLanes;
    const bool whole = begin == 0 && end == kTilePositions;
    Vec products[kCount];
    // Compared as integers, NaN is larger than any number, and no other is negative.
    __m256i bits = _mm256_setzero_si256();
    for (int32_t i = 0; i < kCount; ++i) {
      const int32_t c = i * kLanes;
      products[i] = Load(weights + c) * Load(scales + c);
      if (!whole) products[i] = Select(LanesIn(begin - c, end - c), products[i], Zero());
      bits = _mm256_max_epu32(bits, _mm256_castps_si256(products[i]));
    }
    const float largest = LargestOf(bits);
    steps[r] = largest / kLargest;
    const bool finite = largest > 1e-30f && largest < __builtin_inff();
    const Vec per_step = Set1(finite ? kLargest / largest : 0.0f);
    for (int32_t i = 0; i < kCount; i += 2) {
      const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(products[i] * per_step),
                                               _mm256_cvtps_epi32(products[i + 1] * per_step));
      StoreWords(pairs + r * kTilePairs + i * kLanes / 2, _mm256_permute4x64_epi64(words, 0xd8));
    }
  }

 private:
  static float LargestOf(__m256i bits) {
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    four = _mm_max_epu32(four, _mm_unpackhi_epi64(four, four));
    four = _mm_max_epu32(four, _mm_srli_epi64(four, 32));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
  }
};

// sums[r][0..32) += weights[r] * v over a tile, for `R` of the rows of `weights` from `first` on;
// their sums lie `sum_stride` apart.
template <int R, int kRows, typename Columns, typename Ahead>
inline void MixRowsOfBlock(const ScaledWeights<kRows>& weights, int first, const Columns& v,
                           float* sums, uint32_t sum_stride, Ahead& ahead) {
  constexpr int kStretch = 8 * kParts<kRows>;
  const float* const pairs = weights.pairs + first * kTilePairs;
  for (uint32_t column = 0; column < kBlockValues; column += kVecs * kLanes) {
    Ints sum[R][kVecs] = {};
    for (int32_t stretch = 0; stretch < kTilePairs; stretch += kStretch) {
#pragma GCC unroll 2
      for (int32_t p = stretch; p < stretch + kStretch; ++p) {
        __m256i value[kVecs];
        v.Load(p, column, value);
        AddWords(
            value, [&](int r) { return pairs[r * kTilePairs + p]; }, sum);
      }
      ahead.Fetch();
    }
    for (int r = 0; r < R; ++r) {
      float* const out = sums + static_cast<uint32_t>(first + r) * sum_stride + column;
      const Vec step = Set1(weights.steps[first + r]);
      for (int c = 0; c < kVecs; ++c) {
        const Vec total = _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(sum[r][c]));
        Store(out + c * kLanes, Fma(total, step, Load(out + c * kLanes)));
      }
    }
  }
}

// Of all R rows.
template <int R, typename Columns, typename Ahead>
inline void MixBlock(const ScaledWeights<R>& weights, const Columns& v, float* sums,
                     uint32_t sum_stride, Ahead& ahead) {
  constexpr int kFirst = kInParts<R> ? kFirstPart<R> : R;
  MixRowsOfBlock<kFirst>(weights, 0, v, sums, sum_stride, ahead);
  if constexpr (kInParts<R>)
    MixRowsOfBlock<R - kFirst>(weights, kFirst, v, sums, sum_stride, ahead);
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_INT16_TILE_H_
