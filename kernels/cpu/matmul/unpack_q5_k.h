// Q5_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_K_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_K_H_

#include "common/tensor/blocks/q5_k.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_k_scales.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ5_K {
  using Block = tensor::BlockQ5_K;
  using Int = typename S::Int;
  using TileT = typename UnpackKScales<S>::TileT;

  // One block of each row: eight tiles, one per group.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    UnpackKScales<S>::Run(rows, offset, out);
    Int fifth[8];
    S::Load32(rows, offset + offsetof(Block, qh), fifth);
    RunPair<0>(rows, offset, fifth, out);
    RunPair<1>(rows, offset, fifth, out);
    RunPair<2>(rows, offset, fifth, out);
    RunPair<3>(rows, offset, fifth, out);
  }

 private:
  // Groups 2 kPair and 2 kPair + 1.
  template <int kPair>
  [[gnu::always_inline]] static inline void RunPair(const typename S::Rows& rows, size_t offset,
                                                    const Int* fifth, TileT* out) {
    const Int low4 = S::Bytes(0x0f);
    const Int bit4 = S::Bytes(0x10);
    Int nibbles[8];
    S::Load32(rows, offset + offsetof(Block, qs) + 32 * kPair, nibbles);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      out[2 * kPair].q[j] =
          S::Or(S::And(nibbles[j], low4), MoveBits<S, 2 * kPair, 4>(fifth[j], bit4));
      out[2 * kPair + 1].q[j] = S::Or(S::And(S::template ShiftRight<4>(nibbles[j]), low4),
                                      MoveBits<S, 2 * kPair + 1, 4>(fifth[j], bit4));
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_K_H_
