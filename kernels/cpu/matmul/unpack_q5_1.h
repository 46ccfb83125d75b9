// Q5_1 rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_1_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_1_H_

#include "common/tensor/blocks/q5_1.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ5_1 {
  using Block = tensor::BlockQ5_1;
  using TileT = Tile<S, TileTraits<0, 1, true, false>>;

  // One block of each row: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    LoadScaleAndOffset<S>(rows, offset + offsetof(Block, d), out->scale);
    LoadNibbles<S>(rows, offset + offsetof(Block, qs), out->q);
    AddFifthBits<S>(S::LoadWord(rows, offset + offsetof(Block, qh)), out->q);
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_1_H_
