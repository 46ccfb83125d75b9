// Tiles of blocks of 32 values, one to a block, for blocks_of_32.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_32_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_32_H_

#include "common/tensor/blocks_of_32.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackQ8_0 {
  using Block = tensor::BlockQ8_0;
  using TileT = SignedTile<S>;
  using Head = HalfScale<S, offsetof(Block, d)>;
  static constexpr bool kAlwaysInPlace = true;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [words = block.template Words<8>(offsetof(Block, qs))](int j)
        __attribute__((always_inline)) {
      return S::kVnni ? S::Xor(words[j], S::Bytes(0x80)) : words[j];
    };
  }
};

// Nibbles and a scale, with an offset where the block has one.
template <class S, class BlockV, class Traits>
struct UnpackNibbles {
  using Block = BlockV;
  using TileT = Tile<S, Traits>;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block) {
      if constexpr (Traits::kMins) {
        LoadScaleAndOffset<S>(block, offsetof(Block, d), scale);
      } else {
        scale[0] = block.template LoadHalf<offsetof(Block, d)>();
      }
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      out[0] = scale[0];
      if constexpr (Traits::kMins) out[1] = scale[1];
    }

    typename S::Float scale[Traits::kMins ? 2 : 1];
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [words = block.template Words<4>(offsetof(Block, qs))](int j)
        __attribute__((always_inline)) {
      return NibblesOf<S>(words, j);
    };
  }
};

// The same with a fifth bit.
template <class S, class BlockV, class Traits>
struct UnpackFiveBits : UnpackNibbles<S, BlockV, Traits> {
  using Nibbles = UnpackNibbles<S, BlockV, Traits>;
  using Block = BlockV;

  struct Head : Nibbles::Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : Nibbles::Head(block), fifth(block.LoadWord(offsetof(Block, qh))) {}

    typename S::Int fifth;
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& head) {
    return [ low = Nibbles::template Words<kTile>(block, head), fifth = head.fifth ](int j)
        __attribute__((always_inline)) {
      return S::Or(low(j), S::FifthBits(fifth, j));
    };
  }
};

template <class S>  // nibble - 8
using UnpackQ4_0 = UnpackNibbles<S, tensor::BlockQ4_0, TileTraits<3, 1, false, false, 15>>;
template <class S>
using UnpackQ4_1 = UnpackNibbles<S, tensor::BlockQ4_1, TileTraits<0, 1, true, false, 15>>;
template <class S>  // five bits - 16
using UnpackQ5_0 = UnpackFiveBits<S, tensor::BlockQ5_0, TileTraits<4, 1, false, false, 31>>;
template <class S>
using UnpackQ5_1 = UnpackFiveBits<S, tensor::BlockQ5_1, TileTraits<0, 1, true, false, 31>>;

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_32_H_
