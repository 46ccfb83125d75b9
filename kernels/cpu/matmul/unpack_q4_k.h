// Q4_K rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_K_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_K_H_

#include "common/tensor/blocks/q4_k.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_k_scales.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ4_K {
  using Block = tensor::BlockQ4_K;
  using TileT = typename UnpackKScales<S>::TileT;

  // One block of each row: eight tiles, one per group.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    UnpackKScales<S>::Run(rows, offset, out);
    const typename S::Int low4 = S::Bytes(0x0f);
    for (int pair = 0; pair < 4; ++pair) {
      typename S::Int nibbles[8];
      S::Load32(rows, offset + offsetof(Block, qs) + 32 * pair, nibbles);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        out[2 * pair].q[j] = S::And(nibbles[j], low4);
        out[2 * pair + 1].q[j] = S::And(S::template ShiftRight<4>(nibbles[j]), low4);
      }
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_K_H_
