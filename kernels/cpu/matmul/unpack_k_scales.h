// The scales and minimums of Q4_K and Q5_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_K_SCALES_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_K_SCALES_H_

#include "common/tensor/blocks/k_scales.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackKScales {
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT = Tile<S, TileTraits<0, 1, true, false>>;

  // The 16 bytes at `offset` of each row, d and dmin (halves) and KScales: to scale and minimum of
  // eight tiles.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    Int head[4];  // d and dmin, then the three words of scales
    S::Load16(rows, offset, head);
    const Float d = S::HalfToFloat(head[0]);
    const Float dmin = S::HalfToFloat(S::template ShiftRight<16>(head[0]));
    // Byte g of scale[h] and min[h] belongs to group 4h + g (packed as in k_scales.h).
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    const Int six = S::Bytes(0x3f);
    const Int scale[2] = {
        S::And(head[1], six),
        S::Or(S::And(head[3], low4), S::And(S::template ShiftRight<2>(head[1]), high2))};
    const Int min[2] = {S::And(head[2], six),
                        S::Or(S::And(S::template ShiftRight<4>(head[3]), low4),
                              S::And(S::template ShiftRight<2>(head[2]), high2))};
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      Set<0>(d, dmin, scale[h], min[h], out + 4 * h);
      Set<1>(d, dmin, scale[h], min[h], out + 4 * h + 1);
      Set<2>(d, dmin, scale[h], min[h], out + 4 * h + 2);
      Set<3>(d, dmin, scale[h], min[h], out + 4 * h + 3);
    }
  }

 private:
  template <int kByte>
  [[gnu::always_inline]] static inline void Set(Float d, Float dmin, Int scales, Int mins,
                                                TileT* out) {
    out->scale[0] = S::Mul(d, S::ToFloat(S::template Byte<kByte>(scales)));
    out->scale[1] = S::Mul(dmin, S::ToFloat(S::template Byte<kByte>(mins)));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_K_SCALES_H_
