// Tiles of weights that are indices into a codebook, for codebook_kernels.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_CODEBOOK_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_CODEBOOK_H_

#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

// Word j of the values that the 32 indices at `at` of each row's block stand for.
template <class S, class TileT, class B>
[[gnu::always_inline]] inline auto ValuesOfNibbles(const B& block, size_t at,
                                                   const tensor::Codebook& codebook) {
  return [
    words = block.template Words<4>(at),
    lookup = CodebookLookup<S, typename TileT::Traits>(codebook)
  ](int j) __attribute__((always_inline)) {
    return lookup(NibblesOf<S>(words, j));
  };
}

template <class S>
struct UnpackIQ4_NL {
  using Block = tensor::BlockIQ4_NL;
  using TileT = SignedTile<S>;
  using Head = HalfScale<S, offsetof(Block, d)>;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return ValuesOfNibbles<S, TileT>(block, offsetof(Block, qs), tensor::kIq4Codebook);
  }
};

// Eight tiles to a block.
template <class S>
struct UnpackIQ4_XS {
  using Block = tensor::BlockIQ4_XS;
  using TileT = SignedTile<S>;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : low(block.LoadWord(offsetof(Block, scales_l))) {
      const typename S::Int word = block.LoadWord(offsetof(Block, d));
      d = S::HalfToFloat(word);
      high = S::template ShiftRight<16>(word);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      const typename S::Int six =
          S::Or(S::And(S::template ShiftRight<4 * kTile>(low), S::Words(15)),
                MoveBits<S, 2 * kTile, 4>(high, S::Words(0x30)));
      out[0] = S::Mul(d, S::ToFloat(S::SubWords(six, S::Words(32))));
    }

    typename S::Float d;
    typename S::Int low, high;  // bits of the scales
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return ValuesOfNibbles<S, TileT>(block, offsetof(Block, qs) + 16 * kTile, tensor::kIq4Codebook);
  }
};

template <class S>
struct UnpackMXFP4 {
  using Block = tensor::BlockMXFP4;
  using TileT = Tile<S, TileTraits<4, 1, false, false, 28>>;  // values of -12 to 12, plus 16

  struct Head : OneScale<S> {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : OneScale<S>(Scale(block.template LoadByte<offsetof(Block, e)>())) {}
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return ValuesOfNibbles<S, TileT>(block, offsetof(Block, qs), tensor::kMxfp4Codebook);
  }

 private:
  // 2^(e - 128), which may be too small for a normal float: the product of two halves of e.
  [[gnu::always_inline]] static inline typename S::Float Scale(typename S::Int e) {
    const typename S::Int half = S::template ShiftRight<1>(e);
    const typename S::Int rest = S::SubWords(e, half);
    return S::Mul(PowerOfTwo(half), PowerOfTwo(rest));
  }
  // 2^(e - 64), e in [0, 128].
  [[gnu::always_inline]] static inline typename S::Float PowerOfTwo(typename S::Int e) {
    return S::AsFloat(S::template ShiftLeft<23>(S::SubWords(e, S::Words(64 - 127))));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_CODEBOOK_H_
