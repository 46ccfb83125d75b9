// Q2_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q2_K_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q2_K_H_

#include "common/tensor/blocks/q2_k.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ2_K {
  using Block = tensor::BlockQ2_K;
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT = Tile<S, TileTraits<0, 2, true, false>>;  // scale and minimum per 16 values

  // One block of each row: eight tiles.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    const Int head = S::LoadWord(rows, offset + offsetof(Block, d));
    const Float d = S::HalfToFloat(head);
    const Float dmin = S::HalfToFloat(S::template ShiftRight<16>(head));
    Int words[4];  // of scales
    S::Load16(rows, offset + offsetof(Block, scales), words);
    const Int low4 = S::Bytes(0x0f);
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      const Int scales = S::And(words[w], low4);
      const Int mins = S::And(S::template ShiftRight<4>(words[w]), low4);
      TileT* two = out + 2 * w;
      two[0].scale[0] = S::Mul(d, S::ToFloat(S::template Byte<0>(scales)));
      two[0].scale[1] = S::Mul(d, S::ToFloat(S::template Byte<1>(scales)));
      two[0].scale[2] = S::Mul(dmin, S::ToFloat(S::template Byte<0>(mins)));
      two[0].scale[3] = S::Mul(dmin, S::ToFloat(S::template Byte<1>(mins)));
      two[1].scale[0] = S::Mul(d, S::ToFloat(S::template Byte<2>(scales)));
      two[1].scale[1] = S::Mul(d, S::ToFloat(S::template Byte<3>(scales)));
      two[1].scale[2] = S::Mul(dmin, S::ToFloat(S::template Byte<2>(mins)));
      two[1].scale[3] = S::Mul(dmin, S::ToFloat(S::template Byte<3>(mins)));
    }
    for (int half = 0; half < 2; ++half) {
      LoadPairsOfBits<S>(rows, offset + offsetof(Block, qs) + 32 * half, out + 4 * half);
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q2_K_H_
