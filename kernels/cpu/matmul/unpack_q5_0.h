// Q5_0 rows to tiles.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_0_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_0_H_

#include "common/tensor/blocks/q5_0.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ5_0 {
  using Block = tensor::BlockQ5_0;
  using TileT = Tile<S, TileTraits<4, 1, false, false>>;  // five bits - 16

  // One block of each row: one tile.
  [[gnu::always_inline]] static inline void Run(const typename S::Rows& rows, size_t offset,
                                                TileT* out) {
    out->scale[0] = S::HalfToFloat(S::LoadWord(rows, offset + offsetof(Block, d)));
    const typename S::Int fifth = S::LoadWord(rows, offset + offsetof(Block, qh));
    typename S::Int nibbles[4];
    S::Load16(rows, offset + offsetof(Block, qs), nibbles);
    Join<0>(nibbles[0], fifth, out->q);
    Join<1>(nibbles[1], fifth, out->q);
    Join<2>(nibbles[2], fifth, out->q);
    Join<3>(nibbles[3], fifth, out->q);
  }

 private:
  // Values 4j .. 4j+3 lie in the low halves of the nibbles, 16 + 4j .. in the high ones.
  template <int kWord>
  [[gnu::always_inline]] static inline void Join(typename S::Int nibbles, typename S::Int fifth,
                                                 typename S::Int* q) {
    const typename S::Int low = S::Bytes(15);
    q[kWord] = S::Or(S::And(nibbles, low), S::template FifthBits<kWord>(fifth));
    q[kWord + 4] = S::Or(S::And(S::template ShiftRight<4>(nibbles), low),
                         S::template FifthBits<kWord + 4>(fifth));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_Q5_0_H_
