// Products of tiles of ByteProducts with blocks of query rows: integer_tile.h.
//
// Integer sums are exact, so a score is a chain over blocks of 32 dimensions; an output value is a
// chain over pairs of positions.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_BYTE_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_BYTE_TILE_H_

#if defined(__AVX512VBMI__)

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/bytes.h"
#include "kernels/cpu/attention/integers.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// sums[r][c] += k[c] * q[r] over the words of a block from `first` on, for R rows of q that lie
// `stride` apart.
template <int R, int Vecs, typename Column, typename Ahead>
__attribute__((always_inline)) inline void AddBytes(const float* q, uint32_t stride,
                                                    const Column (&k)[Vecs], uint32_t first,
                                                    Ints (&sums)[R][Vecs], Ahead& ahead) {
  // So often that the passes over K call it once per line of V.
  constexpr uint32_t kStretch = 2 * kTilePositions / (Vecs * kLanes);
  for (uint32_t w = 0; w < kBlockWords; ++w) {
    if constexpr (Ahead::kStreams) {
      if (w % kStretch == 0) ahead.Fetch();
    }
    __m512i column[Vecs];
    for (int c = 0; c < Vecs; ++c) column[c] = k[c].BiasedWord(first + w);
    for (int r = 0; r < R; ++r) {
      const auto word = reinterpret_cast<__m512i>(Set1(q[static_cast<uint32_t>(r) * stride + w]));
      for (int c = 0; c < Vecs; ++c) {
        sums[r][c] = reinterpret_cast<Ints>(
            _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sums[r][c]), column[c], word));
      }
    }
  }
  if constexpr (!Ahead::kStreams) ahead.Fetch();
}

// scores[r * 64 + i] = q[r] . k[:, i] for R rows of q that lie `stride` apart.
template <int R, typename Keys, typename Ahead>
inline void ScoreRows(const float* q, uint32_t stride, uint32_t dim, const Keys& keys,
                      float* scores, Ahead& ahead) {
  constexpr int kVecs = R > kBlockRows ? 2 : 4;
  const uint32_t blocks = dim / kBlockValues;
  const float* const steps = q + blocks * kQueryWords;
  for (int32_t i = 0; i < kTilePositions; i += kVecs * kLanes) {
    decltype(keys(i)) k[kVecs];
    for (int c = 0; c < kVecs; ++c) k[c] = keys(i + c * kLanes);
    for (uint32_t b = 0; b < blocks; ++b) {
      const float* const query = q + b * kQueryWords;
      const float* const sum_of_query = query + 2 * kBlockWords;
      Ints sums[R][kVecs];
      for (int r = 0; r < R; ++r) {
        for (int c = 0; c < kVecs; ++c)
          sums[r][c] =
              reinterpret_cast<Ints>(Set1(sum_of_query[static_cast<uint32_t>(r) * stride]));
      }
      AddBytes(query, stride, k, b * kBlockWords, sums, ahead);
      for (int r = 0; r < R; ++r) {
        for (int c = 0; c < kVecs; ++c) sums[r][c] *= 128;
      }
      AddBytes(query + kBlockWords, stride, k, b * kBlockWords, sums, ahead);
      AddBlockScores(
          sums, [&](int c) { return k[c].Scales(b); }, b, blocks, steps, stride, scores + i);
    }
  }
}

// Weights of R rows times the scales of V, as pairs of positions in BF16.
template <int R>
struct ScaledWeights {
  alignas(64) float pairs[R * kTilePairs];

  // Zero outside [begin, end), where scales may be anything.
  void Set(int r, const float* weights, const float* scales, int32_t begin, int32_t end) {
    const bool whole = begin == 0 && end == kTilePositions;
    const auto scaled = [=](int32_t c) {
      const Vec product = Load(weights + c) * Load(scales + c);
      return whole ? product : Select(LanesIn(begin - c, end - c), product, Zero());
    };
    for (int32_t c = 0; c < kTilePositions; c += 2 * kLanes)
      Store(pairs + r * kTilePairs + c / 2, RoundToBf16(scaled(c), scaled(c + kLanes)));
  }
};

// sums[r][0..32) += weights[r] * v over a tile, R rows `sum_stride` apart.
template <int R, typename Columns, typename Ahead>
inline void MixBlock(const ScaledWeights<R>& weights, const Columns& v, float* sums,
                     uint32_t sum_stride, Ahead& ahead) {
  constexpr int kStretch = 4;
  Vec sum[R][2];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < 2; ++c)
      sum[r][c] = Load(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes);
  }
  for (int32_t stretch = 0; stretch < kTilePairs; stretch += kStretch) {
    for (int32_t p = stretch; p < stretch + kStretch; ++p) {
      const Vec value[2] = {v(p, 0), v(p, kLanes)};
      for (int r = 0; r < R; ++r) {
        const Vec weight = Set1(weights.pairs[r * kTilePairs + p]);
        for (int c = 0; c < 2; ++c) sum[r][c] = PairProducts::MulAdd(weight, value[c], sum[r][c]);
      }
    }
    ahead.Fetch();
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < 2; ++c)
      Store(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes, sum[r][c]);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif

#endif  // TANDEM_KERNELS_CPU_ATTENTION_BYTE_TILE_H_
