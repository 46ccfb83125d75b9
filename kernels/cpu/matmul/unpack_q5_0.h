// Q5_0 rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_0_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_0_H_

#include "common/tensor/blocks/q5_0.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ5_0 {
  using Block = tensor::BlockQ5_0;
  using TileT = Tile<S, TileTraits<4, 1, false, false>>;  // five bits - 16

  // One block of each row: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    out->scale[0] = S::HalfToFloat(S::LoadWord(rows, offset + offsetof(Block, d)));
    LoadNibbles<S>(rows, offset + offsetof(Block, qs), out->q);
    AddFifthBits<S>(S::LoadWord(rows, offset + offsetof(Block, qh)), out->q);
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_0_H_
