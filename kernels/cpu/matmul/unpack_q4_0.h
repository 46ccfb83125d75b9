// Q4_0 rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_0_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_0_H_

#include "common/tensor/blocks/q4_0.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ4_0 {
  using Block = tensor::BlockQ4_0;
  using TileT = Tile<S, TileTraits<3, 1, false, false>>;  // nibble - 8

  // One block of each row: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    out->scale[0] = S::HalfToFloat(S::LoadWord(rows, offset + offsetof(Block, d)));
    typename S::Int nibbles[4];
    S::Load16(rows, offset + offsetof(Block, qs), nibbles);
    const typename S::Int low = S::Bytes(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      out->q[j] = S::And(nibbles[j], low);
      out->q[j + 4] = S::And(S::template ShiftRight<4>(nibbles[j]), low);
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q4_0_H_
