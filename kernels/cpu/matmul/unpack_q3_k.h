// Q3_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q3_K_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q3_K_H_

#include "common/tensor/blocks/q3_k.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ3_K {
  using Block = tensor::BlockQ3_K;
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT = Tile<S, TileTraits<2, 2, false, false>>;  // three bits - 4, a scale per 16 values

  // One block of each row: eight tiles.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    SetScales(rows, offset, out);
    for (int half = 0; half < 2; ++half) {
      LoadPairsOfBits<S>(rows, offset + offsetof(Block, qs) + 32 * half, out + 4 * half);
    }
    Int third[8];
    S::Load32(rows, offset + offsetof(Block, hmask), third);
    AddThirdBit<0>(third, out);
    AddThirdBit<1>(third, out);
    AddThirdBit<2>(third, out);
    AddThirdBit<3>(third, out);
    AddThirdBit<4>(third, out);
    AddThirdBit<5>(third, out);
    AddThirdBit<6>(third, out);
    AddThirdBit<7>(third, out);
  }

 private:
  [[gnu::always_inline]] static inline void SetScales(const typename S::Rows& rows, size_t offset,
                                                      TileT* out) {
    // The last four bytes of qs, then the twelve of scales; d comes last in the block.
    Int words[4];
    S::Load16(rows, offset + offsetof(Block, scales) - 4, words);
    const Float d = S::HalfToFloat(
        S::template ShiftRight<16>(S::LoadWord(rows, offset + offsetof(Block, d) - 2)));
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    // Byte j of word w: number 4w + j.
    const Int six[4] = {
        S::Or(MoveBits<S, 0, 0>(words[1], low4), MoveBits<S, 0, 4>(words[3], high2)),
        S::Or(MoveBits<S, 0, 0>(words[2], low4), MoveBits<S, 2, 4>(words[3], high2)),
        S::Or(MoveBits<S, 4, 0>(words[1], low4), MoveBits<S, 4, 4>(words[3], high2)),
        S::Or(MoveBits<S, 4, 0>(words[2], low4), MoveBits<S, 6, 4>(words[3], high2))};
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      TileT* two = out + 2 * w;
      two[0].scale[0] = S::Mul(d, Less32(S::template Byte<0>(six[w])));
      two[0].scale[1] = S::Mul(d, Less32(S::template Byte<1>(six[w])));
      two[1].scale[0] = S::Mul(d, Less32(S::template Byte<2>(six[w])));
      two[1].scale[1] = S::Mul(d, Less32(S::template Byte<3>(six[w])));
    }
  }

  [[gnu::always_inline]] static inline Float Less32(Int a) {
    return S::ToFloat(S::SubWords(a, S::Words(32)));
  }

  // Of the 32 values of tile kTile.
  template <int kTile>
  [[gnu::always_inline]] static inline void AddThirdBit(const Int* third, TileT* out) {
    const Int bit2 = S::Bytes(0x04);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      out[kTile].q[j] = S::Or(out[kTile].q[j], MoveBits<S, kTile, 2>(third[j], bit2));
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q3_K_H_
