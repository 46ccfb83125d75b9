// IQ4_NL rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_IQ4_NL_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_IQ4_NL_H_

#include "common/tensor/blocks/iq4_nl.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackIQ4_NL {
  using Block = tensor::BlockIQ4_NL;
  using TileT = SignedTile<S>;

  // One block of each row: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    out->scale[0] = S::HalfToFloat(S::LoadWord(rows, offset + offsetof(Block, d)));
    LoadNibbles<S>(rows, offset + offsetof(Block, qs), out->q);
    CodebookLookup<S>(tensor::kIq4Codebook).Run(out->q);
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_IQ4_NL_H_
