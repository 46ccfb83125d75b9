// MXFP4 rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_MXFP4_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_MXFP4_H_

#include "common/tensor/blocks/mxfp4.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackMXFP4 {
  using Block = tensor::BlockMXFP4;
  using TileT = SignedTile<S>;

  // One block of each row: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    const typename S::Int e = S::template Byte<0>(S::LoadWord(rows, offset + offsetof(Block, e)));
    // 2^(e - 128) may be too small for a normal float, so it is the product of two halves of e.
    const typename S::Int half = S::template ShiftRight<1>(e);
    const typename S::Int rest = S::SubWords(e, half);
    out->scale[0] = S::Mul(PowerOfTwo(half), PowerOfTwo(rest));
    LoadNibbles<S>(rows, offset + offsetof(Block, qs), out->q);
    CodebookLookup<S>(tensor::kMxfp4Codebook).Run(out->q);
  }

 private:
  // 2^(e - 64), e in [0, 128].
  [[gnu::always_inline]] static inline typename S::Float PowerOfTwo(typename S::Int e) {
    return S::AsFloat(S::template ShiftLeft<23>(S::SubWords(e, S::Words(64 - 127))));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_MXFP4_H_
