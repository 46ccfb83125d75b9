// Q8_0 rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q8_0_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q8_0_H_

#include "common/tensor/blocks/q8_0.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ8_0 {
  using Block = tensor::BlockQ8_0;
  using TileT = SignedTile<S>;

  // One block of each row, `offset` bytes from the rows' begin: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    out->scale[0] = S::HalfToFloat(S::LoadWord(rows, offset + offsetof(Block, d)));
    S::Load32(rows, offset + offsetof(Block, qs), out->q);
    if constexpr (S::kVnni) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) out->q[j] = S::Xor(out->q[j], S::Bytes(0x80));
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q8_0_H_
