// One tile of attention: the two products of 64 positions of K and V with a block of query rows.
//
// A score is one chain of products over the words of the head's dimensions, an output value one
// chain over the words of positions: no sum depends on how rows are grouped. Included by files that
// are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_TILE_H_

#include "kernels/cpu/attention_ahead.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/attention_products.h"
#include "kernels/cpu/attention_unpack.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Rows of the register tile, and vectors per row; of a wide one, which is used where all rows are
// one block, so that K and V are read once.
inline constexpr int kBlockRows = 6, kWideBlockRows = 8;
template <int R>
inline constexpr int kBlockVecs = (kLanes == 16 ? 4 : 2) / (R > kBlockRows ? 2 : 1);

// Words of a sum between two calls of Fetch: of ReadAhead, and of StreamAhead so many that a pass
// over V calls it once per line of K, and the passes over K once per line of V (of 16 bits).
template <typename Ahead>
constexpr int32_t Stretch(int32_t passes) {
  return (Ahead::kStreams ? 2 * passes : 8) / Products::kOfWord;
}

// scores[r * 64 + i] = q[r] . k[:, i] for R rows of q that lie `stride` apart.
template <int R, typename Keys, typename Ahead>
inline void ScoreRows(const float* q, uint32_t stride, uint32_t dim, const Keys& keys,
                      float* scores, Ahead& ahead) {
  constexpr int kVecs = kBlockVecs<R>;
  constexpr uint32_t kStretch = Stretch<Ahead>(kTilePositions / (kVecs * kLanes));
  const uint32_t words = dim / Products::kOfWord;
  for (int32_t i = 0; i < kTilePositions; i += kVecs * kLanes) {
    decltype(keys(i)) k[kVecs];
    for (int c = 0; c < kVecs; ++c) k[c] = keys(i + c * kLanes);
    Vec sum[R][kVecs];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVecs; ++c) sum[r][c] = Zero();
    }
    for (uint32_t stretch = 0; stretch < words; stretch += kStretch) {
      const uint32_t end = words - stretch < kStretch ? words : stretch + kStretch;
      for (uint32_t d = stretch; d < end; ++d) {
        Vec column[kVecs];
        for (int c = 0; c < kVecs; ++c) column[c] = k[c](d);
        for (int r = 0; r < R; ++r) {
          const Vec value = Set1(q[static_cast<uint32_t>(r) * stride + d]);
          for (int c = 0; c < kVecs; ++c) sum[r][c] = Products::MulAdd(value, column[c], sum[r][c]);
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

// sums[r][c..] += weights[r * 64 + w] * v(w, column + c..) for the words w of positions
// [begin, end), in order; `Vecs` vectors. REQUIRES: R = 1, or whole words.
template <int R, int Vecs, typename Columns, typename Ahead>
inline void MixColumns(const float* weights, int32_t begin, int32_t end, const Columns& v,
                       uint32_t column, float* sums, uint32_t sum_stride, Ahead& ahead) {
  constexpr int32_t kStretch = Stretch<Ahead>(2 * 32 / (Vecs * kLanes));
  Vec sum[R][Vecs];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < Vecs; ++c)
      sum[r][c] = Load(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes);
  }
  const int32_t first = begin / Products::kOfWord;
  const int32_t last = (end + Products::kOfWord - 1) / Products::kOfWord;
  for (int32_t stretch = first; stretch < last; stretch += kStretch) {
    const int32_t stop = last - stretch < kStretch ? last : stretch + kStretch;
    for (int32_t w = stretch; w < stop; ++w) {
      Vec value[Vecs];
      for (int c = 0; c < Vecs; ++c) {
        value[c] = v(w, column + static_cast<uint32_t>(c * kLanes));
        if (R == 1) value[c] = Products::Within(value[c], w, begin, end);
      }
      for (int r = 0; r < R; ++r) {
        const Vec weight = Set1(weights[r * kTilePositions + w]);
        for (int c = 0; c < Vecs; ++c) sum[r][c] = Products::MulAdd(weight, value[c], sum[r][c]);
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
template <int R, typename Ahead>
inline void MixRows(const float* weights, int32_t begin, int32_t end, const FloatColumns& v,
                    uint32_t columns, float* sums, uint32_t sum_stride, Ahead& ahead) {
  constexpr int kVecs = kBlockVecs<R>;
  constexpr uint32_t kWide = kVecs * kLanes;
  uint32_t c = 0;
  for (; c + kWide <= columns; c += kWide)
    MixColumns<R, kVecs>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
  for (; c < columns; c += kLanes)
    MixColumns<R, 1>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
}

// The same straight from pages. REQUIRES: columns a multiple of 32.
template <int R, typename Ahead>
inline void MixPageRows(const float* weights, int32_t begin, int32_t end, tensor::Type type,
                        const void* const rows[kTilePositions], uint32_t columns, float* sums,
                        uint32_t sum_stride, Ahead& ahead) {
  constexpr int kVecs = R > kBlockRows && kLanes == 8 ? 1 : 2;
  constexpr uint32_t kColumns = 32;
  for (uint32_t at = 0; at < columns; at += kColumns) {
    Products::WithPageColumns(type, rows, at, [&](const auto& v) {
      for (uint32_t c = 0; c < kColumns; c += kVecs * kLanes)
        MixColumns<R, kVecs>(weights, begin, end, v, c, sums + at + c, sum_stride, ahead);
    });
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
