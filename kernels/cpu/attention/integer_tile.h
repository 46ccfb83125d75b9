// tile.h's products for tiles of Q8_0 pages that stay integers, with all rows over the whole tile:
// weights of what a row does not see are zero, and so are the products of finite values with them.
// Included by files that are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_INTEGER_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_INTEGER_TILE_H_

#if defined(TANDEM_INTEGER_ATTENTION)

#if defined(__AVX512VBMI__)
#include "kernels/cpu/attention/byte_tile.h"
#else
#include "kernels/cpu/attention/int16_tile.h"
#endif
#include "kernels/cpu/attention/integers.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/unpack.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// V of a tile: in the pages, or unpacked by LoadV if `rows` is null.
struct TileOfV {
  const void* const* rows;
  const float* unpacked;
};

// sums += weights * V of the tile for R rows, of which row r sees [begin[r], end[r]).
template <int R, typename Ahead>
inline void MixTile(const float* weights, const int32_t begin[R], const int32_t end[R],
                    const TileOfV& v, uint32_t columns, float* sums, uint32_t sum_stride,
                    Ahead& ahead) {
  alignas(64) float scales_in_pages[kTilePositions];
  ScaledWeights<R> scaled;
  for (uint32_t b = 0; b < columns / kBlockValues; ++b) {
    const float* scales = scales_in_pages;
    if (v.rows != nullptr) {
      LoadScales(v.rows, b, scales_in_pages);
    } else {
      scales = v.unpacked + Products::VWords(columns) + b * kTilePositions;
    }
    for (int r = 0; r < R; ++r)
      scaled.Set(r, weights + r * kTilePositions, scales, begin[r], end[r]);
    float* const out = sums + b * kBlockValues;
    if (v.rows != nullptr) {
      MixBlock<R>(scaled, ByteColumns{v.rows, b}, out, sum_stride, ahead);
    } else {
      MixBlock<R>(scaled, UnpackedColumns{v.unpacked + b * kBlockValues, columns}, out, sum_stride,
                  ahead);
    }
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif

#endif  // TANDEM_KERNELS_CPU_ATTENTION_INTEGER_TILE_H_
