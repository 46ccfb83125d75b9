// Q4_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_K_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_K_H_

#include "common/tensor/blocks/q4_k.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ4_K {
  using Block = tensor::BlockQ4_K;
  using TileT = Tile<S, TileTraits<0, 1, true, false>>;

  // One block of each row: eight tiles, one per group.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    using Int = typename S::Int;
    Int head[4];  // d and dmin, then the three words of scales
    S::Load16(rows, offset, head);
    const typename S::Float d = S::HalfToFloat(head[0]);
    const typename S::Float dmin = S::HalfToFloat(S::template ShiftRight<16>(head[0]));
    // Byte g of scale[h] and min[h] belongs to group 4h + g (the packing stands in q4_k.h).
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
      SetScale<0>(d, dmin, scale[h], min[h], out + 4 * h);
      SetScale<1>(d, dmin, scale[h], min[h], out + 4 * h + 1);
      SetScale<2>(d, dmin, scale[h], min[h], out + 4 * h + 2);
      SetScale<3>(d, dmin, scale[h], min[h], out + 4 * h + 3);
    }
    for (int pair = 0; pair < 4; ++pair) {
      Int nibbles[8];
      S::Load32(rows, offset + offsetof(Block, qs) + 32 * pair, nibbles);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        out[2 * pair].q[j] = S::And(nibbles[j], low4);
        out[2 * pair + 1].q[j] = S::And(S::template ShiftRight<4>(nibbles[j]), low4);
      }
    }
  }

 private:
  template <int kByte>
  [[gnu::always_inline]] static inline void SetScale(typename S::Float d, typename S::Float dmin,
                                                     typename S::Int scales, typename S::Int mins,
                                                     TileT* out) {
    out->scale[0] = S::Mul(d, S::ToFloat(S::template Byte<kByte>(scales)));
    out->scale[1] = S::Mul(dmin, S::ToFloat(S::template Byte<kByte>(mins)));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_K_H_
