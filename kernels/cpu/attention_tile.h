// One tile of attention: the two products of 64 positions of K and V with a block of query rows.
//
// A score is one chain of fused multiply-adds over the head's dimensions, an output value one chain
// over positions: no sum depends on how rows are grouped. Included by files that are compiled once
// per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_TILE_H_

#include "kernels/cpu/attention_pages.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/attention_unpack.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Rows of the register tile, and vectors per row; of a wide one, which is used where all rows are
// one block, so that K and V are read once.
inline constexpr int kBlockRows = 6, kWideBlockRows = 8;
template <int R>
inline constexpr int kBlockVecs = (kLanes == 16 ? 4 : 2) / (R > kBlockRows ? 2 : 1);
// Terms of a sum between two pieces of reading ahead.
inline constexpr int32_t kStretch = 8;

// scores[r * 64 + i] = q[r] . k[:, i] for R rows of q that lie `stride` apart.
template <int R>
inline void ScoreRows(const float* q, uint32_t stride, uint32_t dim, const float* k, float* scores,
                      ReadAhead& ahead) {
  constexpr int kVecs = kBlockVecs<R>;
  for (int32_t i = 0; i < kTilePositions; i += kVecs * kLanes) {
    Vec sum[R][kVecs];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVecs; ++c) sum[r][c] = Zero();
    }
    for (uint32_t stretch = 0; stretch < dim; stretch += kStretch) {
      const uint32_t end = dim - stretch < kStretch ? dim : stretch + kStretch;
      for (uint32_t d = stretch; d < end; ++d) {
        const float* const line = k + d * kTilePositions + i;
        Vec column[kVecs];
        for (int c = 0; c < kVecs; ++c) column[c] = Load(line + c * kLanes);
        for (int r = 0; r < R; ++r) {
          const Vec value = Set1(q[static_cast<uint32_t>(r) * stride + d]);
          for (int c = 0; c < kVecs; ++c) sum[r][c] = Fma(value, column[c], sum[r][c]);
        }
      }
      ahead.Fetch();
    }
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVecs; ++c)
        Store(scores + r * kTilePositions + i + c * kLanes, sum[r][c]);
    }
  }
}

// sums[r][c..] += weights[r * 64 + i] * v(i, column + c..) for i in [begin, end), in order; `Vecs`
// vectors.
template <int R, int Vecs, typename Columns>
inline void MixColumns(const float* weights, int32_t begin, int32_t end, const Columns& v,
                       uint32_t column, float* sums, uint32_t sum_stride, ReadAhead& ahead) {
  Vec sum[R][Vecs];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < Vecs; ++c)
      sum[r][c] = Load(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes);
  }
  for (int32_t stretch = begin; stretch < end; stretch += kStretch) {
    const int32_t stop = end - stretch < kStretch ? end : stretch + kStretch;
    for (int32_t i = stretch; i < stop; ++i) {
      Vec value[Vecs];
      for (int c = 0; c < Vecs; ++c) value[c] = v(i, column + static_cast<uint32_t>(c * kLanes));
      for (int r = 0; r < R; ++r) {
        const Vec weight = Set1(weights[r * kTilePositions + i]);
        for (int c = 0; c < Vecs; ++c) sum[r][c] = Fma(weight, value[c], sum[r][c]);
      }
    }
    ahead.Fetch();
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < Vecs; ++c)
      Store(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes, sum[r][c]);
  }
}

// All columns of R rows of unpacked values; `columns` is the padded value dimension.
template <int R>
inline void MixRows(const float* weights, int32_t begin, int32_t end, const FloatColumns& v,
                    uint32_t columns, float* sums, uint32_t sum_stride, ReadAhead& ahead) {
  constexpr int kVecs = kBlockVecs<R>;
  constexpr uint32_t kWide = kVecs * kLanes;
  uint32_t c = 0;
  for (; c + kWide <= columns; c += kWide)
    MixColumns<R, kVecs>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
  for (; c < columns; c += kLanes)
    MixColumns<R, 1>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
}

// The same straight from pages. REQUIRES: columns a multiple of 32.
template <int R, typename Rows>
inline void MixPageRows(const float* weights, int32_t begin, int32_t end,
                        const void* const rows[kTilePositions], uint32_t columns, float* sums,
                        uint32_t sum_stride, ReadAhead& ahead) {
  constexpr int kVecs = R > kBlockRows && kLanes == 8 ? 1 : 2;
  for (uint32_t at = 0; at < columns; at += PageColumns<Rows>::kColumns) {
    const PageColumns<Rows> v(rows, at);
    for (uint32_t c = 0; c < PageColumns<Rows>::kColumns; c += kVecs * kLanes)
      MixColumns<R, kVecs>(weights, begin, end, v, c, sums + at + c, sum_stride, ahead);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
