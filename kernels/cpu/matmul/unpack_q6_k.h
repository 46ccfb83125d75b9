// Q6_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q6_K_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q6_K_H_

#include "common/tensor/blocks/q6_k.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ6_K {
  using Block = tensor::BlockQ6_K;
  using Int = typename S::Int;
  using TileT = Tile<S, TileTraits<5, 2, false, false>>;  // six bits - 32, a scale per 16 values

  // One block of each row: eight tiles.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    const typename S::Float d = S::HalfToFloat(
        S::template ShiftRight<16>(S::LoadWord(rows, offset + offsetof(Block, d) - 2)));
    Int scales[4];
    S::Load16(rows, offset + offsetof(Block, scales), scales);
#pragma GCC unroll 4
    for (int word = 0; word < 4; ++word) {
      TileT* two = out + 2 * word;
      two[0].scale[0] = S::Mul(d, S::ToFloat(S::template SignedByte<0>(scales[word])));
      two[0].scale[1] = S::Mul(d, S::ToFloat(S::template SignedByte<1>(scales[word])));
      two[1].scale[0] = S::Mul(d, S::ToFloat(S::template SignedByte<2>(scales[word])));
      two[1].scale[1] = S::Mul(d, S::ToFloat(S::template SignedByte<3>(scales[word])));
    }
    for (int half = 0; half < 2; ++half) RunHalf(rows, offset, half, out + 4 * half);
  }

 private:
  [[gnu::always_inline]] static inline void RunHalf(const typename S::Rows& rows, size_t offset,
                                                    int half, TileT* out) {
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    Int high[8];
    S::Load32(rows, offset + offsetof(Block, qh) + 32 * half, high);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      Int low[8];
      S::Load32(rows, offset + offsetof(Block, ql) + 64 * half + 32 * k, low);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        // Bits 2k, 2k + 1 of qh belong to value 32 k + l, bits 2k + 4, 2k + 5 to 32 (k + 2) + l.
        const Int first =
            k == 0 ? S::template ShiftLeft<4>(high[j]) : S::template ShiftLeft<2>(high[j]);
        const Int second = k == 0 ? high[j] : S::template ShiftRight<2>(high[j]);
        out[k].q[j] = S::Or(S::And(low[j], low4), S::And(first, high2));
        out[k + 2].q[j] =
            S::Or(S::And(S::template ShiftRight<4>(low[j]), low4), S::And(second, high2));
      }
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q6_K_H_
