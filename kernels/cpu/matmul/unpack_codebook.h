// Rows of indices into a codebook to tiles, for codebook_kernels.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_CODEBOOK_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_CODEBOOK_H_

#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackIQ4_NL {
  using Block = tensor::BlockIQ4_NL;
  using TileT = SignedTile<S>;

  // One block of each row: one tile.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    out->scale[0] = block.template LoadHalf<offsetof(Block, d)>();
    LoadNibbles<S>(block, offsetof(Block, qs), out->q);
    CodebookLookup<S>(tensor::kIq4Codebook).Run(out->q);
  }
};

// Eight tiles to a block, as those of unpack_blocks_of_256.h.
template <class S>
struct UnpackIQ4_XS {
  using Block = tensor::BlockIQ4_XS;
  using TileT = SignedTile<S>;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : low(block.LoadWord(offsetof(Block, scales_l))), codebook(tensor::kIq4Codebook) {
      const typename S::Int word = block.LoadWord(offsetof(Block, d));
      d = S::HalfToFloat(word);
      high = S::template ShiftRight<16>(word);
    }

    typename S::Float d;
    typename S::Int low, high;  // bits of the scales
    CodebookLookup<S> codebook;
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline void Run(const B& block, const Head& head, TileT* out) {
    const typename S::Int six =
        S::Or(S::And(S::template ShiftRight<4 * kTile>(head.low), S::Words(15)),
              MoveBits<S, 2 * kTile, 4>(head.high, S::Words(0x30)));
    out->scale[0] = S::Mul(head.d, S::ToFloat(S::SubWords(six, S::Words(32))));
    LoadNibbles<S>(block, offsetof(Block, qs) + 16 * kTile, out->q);
    head.codebook.Run(out->q);
  }
};

template <class S>
struct UnpackMXFP4 {
  using Block = tensor::BlockMXFP4;
  using TileT = SignedTile<S, 12>;

  // One block of each row: one tile.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    const typename S::Int e = block.template LoadByte<offsetof(Block, e)>();
    // 2^(e - 128) may be too small for a normal float, so it is the product of two halves of e.
    const typename S::Int half = S::template ShiftRight<1>(e);
    const typename S::Int rest = S::SubWords(e, half);
    out->scale[0] = S::Mul(PowerOfTwo(half), PowerOfTwo(rest));
    LoadNibbles<S>(block, offsetof(Block, qs), out->q);
    CodebookLookup<S>(tensor::kMxfp4Codebook).Run(out->q);
  }

 private:
  // 2^(e - 64), e in [0, 128].
  [[gnu::always_inline]] static inline typename S::Float PowerOfTwo(typename S::Int e) {
    return S::AsFloat(S::template ShiftLeft<23>(S::SubWords(e, S::Words(64 - 127))));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_CODEBOOK_H_
