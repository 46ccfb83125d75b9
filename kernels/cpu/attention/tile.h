// One tile of attention: the two products of 64 positions of K and V with a block of query rows.
//
// A score is one chain of products over the words of the head's dimensions, an output value one
// chain over the words of positions: no sum depends on how rows are grouped. Included by files that
// are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_TILE_H_

#include <type_traits>

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/attention/unpack.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Narrow vectors are too few for a wide tile: it is multiplied in two parts, one after the other.
template <int R>
inline constexpr bool kInParts = kLanes == 8 && (R > kBlockRows);

// Vectors per row of the register tile.
template <int R>
inline constexpr int kBlockVecs = kLanes == 16 ? (R > kBlockRows ? 2 : 4) : (R > 3 ? 2 : 4);
// The same where columns of V are taken from pages, 32 at a time.
template <int R>
inline constexpr int kPageVecs = kLanes == 16 ? 2 : kBlockVecs<R>;

// Passes of all parts over `values` of each of K's dimensions or V's positions.
template <int R, int values, int vecs = kBlockVecs<R>>
constexpr int Passes() {
  if constexpr (kInParts<R>) {
    return Passes<kFirstPart<R>, values>() + Passes<R - kFirstPart<R>, values>();
  } else {
    return values / (vecs * kLanes);
  }
}

// Words of a sum between two calls of Fetch: of ReadAhead, and of StreamAhead so many that a pass
// over V calls it once per line of K, and the passes over K once per line of V (of 16 bits).
template <typename Ahead>
constexpr int32_t Stretch(int32_t passes) {
  return (Ahead::kStreams ? 2 * passes : 8) / Products::kOfWord;
}

// sum[r][c] += one(r) * vec(c). Of narrow vectors the fewer are kept in registers: there are
// sixteen.
template <int R, int Vecs, typename One, typename VecAt>
__attribute__((always_inline)) inline void AddProducts(One one, VecAt vec, Vec (&sum)[R][Vecs]) {
  if constexpr (kLanes == 8 && R < Vecs) {
    Vec ones[R];
    for (int r = 0; r < R; ++r) ones[r] = one(r);
    for (int c = 0; c < Vecs; ++c) {
      const Vec value = vec(c);
      for (int r = 0; r < R; ++r) sum[r][c] = Products::MulAdd(ones[r], value, sum[r][c]);
    }
  } else {
    Vec values[Vecs];
    for (int c = 0; c < Vecs; ++c) values[c] = vec(c);
    for (int r = 0; r < R; ++r) {
      const Vec value = one(r);
      for (int c = 0; c < Vecs; ++c) sum[r][c] = Products::MulAdd(value, values[c], sum[r][c]);
    }
  }
}

// scores[r * 64 + i] = q[r] . k[:, i] for R rows of q that lie `stride` apart.
template <int R, int kPasses = Passes<R, kTilePositions>(), typename Keys, typename Ahead>
inline void ScoreRows(const float* q, uint32_t stride, uint32_t dim, const Keys& keys,
                      float* scores, Ahead& ahead) {
  if constexpr (kInParts<R>) {
    constexpr int kFirst = kFirstPart<R>;
    ScoreRows<kFirst, kPasses>(q, stride, dim, keys, scores, ahead);
    return ScoreRows<R - kFirst, kPasses>(q + size_t{kFirst} * stride, stride, dim, keys,
                                          scores + kFirst * kTilePositions, ahead);
  }
  using Column = decltype(keys(0));
  constexpr int kVecs = kBlockVecs<R>;
  constexpr uint32_t kStretch = Stretch<Ahead>(kPasses) / Column::kValues;
  const uint32_t words = dim / (Products::kOfWord * Column::kValues);
  const float* row[R];
  for (int r = 0; r < R; ++r) row[r] = q + static_cast<size_t>(r) * stride;
  for (int32_t i = 0; i < kTilePositions; i += kVecs * kLanes) {
    Column k[kVecs];
    for (int c = 0; c < kVecs; ++c) k[c] = keys(i + c * kLanes);
    Vec sum[R][kVecs];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVecs; ++c) sum[r][c] = Zero();
    }
    const auto add = [&](uint32_t w, auto value) __attribute__((always_inline)) {
      AddProducts([&](int r) { return Set1(row[r][w * Column::kValues + value]); },
                  [&](int c) { return k[c].template Value<value>(w); }, sum);
    };
    for (uint32_t stretch = 0; stretch < words; stretch += kStretch) {
      const uint32_t end = words - stretch < kStretch ? words : stretch + kStretch;
      for (uint32_t w = stretch; w < end; ++w) {
        add(w, std::integral_constant<uint32_t, 0>());
        if constexpr (Column::kValues == 2) add(w, std::integral_constant<uint32_t, 1>());
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
// [begin, end), in order; `Vecs` vectors. `kPasses`: how many calls cover 32 columns of all rows.
// REQUIRES: R = 1, or whole words.
template <int R, int Vecs, int kPasses, typename Columns, typename Ahead>
inline void MixColumns(const float* weights, int32_t begin, int32_t end, const Columns& v,
                       uint32_t column, float* sums, uint32_t sum_stride, Ahead& ahead) {
  constexpr int32_t kStretch = Stretch<Ahead>(2 * kPasses);
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
      AddProducts([&](int r) { return Set1(weights[r * kTilePositions + w]); },
                  [&](int c) {
                    const Vec value = v(w, column + static_cast<uint32_t>(c * kLanes));
                    return R == 1 ? Products::Within(value, w, begin, end) : value;
                  },
                  sum);
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
  if constexpr (kInParts<R>) {
    constexpr int kFirst = kFirstPart<R>;
    MixRows<kFirst>(weights, begin, end, v, columns, sums, sum_stride, ahead);
    return MixRows<R - kFirst>(weights + kFirst * kTilePositions, begin, end, v, columns,
                               sums + size_t{kFirst} * sum_stride, sum_stride, ahead);
  }
  constexpr int kVecs = kBlockVecs<R>;
  constexpr uint32_t kWide = kVecs * kLanes;
  uint32_t c = 0;
  for (; c + kWide <= columns; c += kWide)
    MixColumns<R, kVecs, 1>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
  for (; c < columns; c += kLanes)
    MixColumns<R, 1, 1>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
}

// 32 columns straight from pages.
template <int R, int kPasses, typename Columns, typename Ahead>
inline void MixPage(const float* weights, int32_t begin, int32_t end, const Columns& v, float* sums,
                    uint32_t sum_stride, Ahead& ahead) {
  if constexpr (kInParts<R>) {
    constexpr int kFirst = kFirstPart<R>;
    MixPage<kFirst, kPasses>(weights, begin, end, v, sums, sum_stride, ahead);
    return MixPage<R - kFirst, kPasses>(weights + kFirst * kTilePositions, begin, end, v,
                                        sums + size_t{kFirst} * sum_stride, sum_stride, ahead);
  }
  constexpr int kVecs = kPageVecs<R>;
  for (uint32_t c = 0; c < Columns::kColumns; c += kVecs * kLanes)
    MixColumns<R, kVecs, kPasses>(weights, begin, end, v, c, sums + c, sum_stride, ahead);
}

// All columns of R rows straight from pages. REQUIRES: columns a multiple of 32.
template <int R, typename Ahead>
inline void MixPageRows(const float* weights, int32_t begin, int32_t end, tensor::Type type,
                        const void* const rows[kTilePositions], uint32_t columns, float* sums,
                        uint32_t sum_stride, Ahead& ahead) {
  constexpr uint32_t kColumns = 32;
  for (uint32_t at = 0; at < columns; at += kColumns) {
    Products::WithPageColumns(type, rows, at, [&](const auto& v) {
      MixPage<R, Passes<R, kColumns, kPageVecs<R>>()>(weights, begin, end, v, sums + at, sum_stride,
                                                      ahead);
    });
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
