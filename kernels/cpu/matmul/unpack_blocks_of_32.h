// Rows of blocks of 32 values to tiles, for blocks_of_32.cc.
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

  // One block of each row: one tile.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    out->scale[0] = block.template LoadHalf<offsetof(Block, d)>();
    typename S::Int
        words[8];  // in registers: stores to a tile cannot be merged, as reads may alias
    block.Load32(offsetof(Block, qs), words);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) out->q[j] = FromWord(words[j]);
  }
  // A word of the tile, of one of the block.
  [[gnu::always_inline]] static inline typename S::Int FromWord(typename S::Int word) {
    return S::kVnni ? S::Xor(word, S::Bytes(0x80)) : word;
  }
};

// Nibbles, with fifth bits where the block has them, and a scale, with an offset where the block
// has one.
template <class S, class BlockV, class Traits>
struct UnpackNibbles {
  using Block = BlockV;
  using TileT = Tile<S, Traits>;

  // One block of each row: one tile.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    if constexpr (Traits::kMins) {
      LoadScaleAndOffset<S>(block, offsetof(Block, d), out->scale);
    } else {
      out->scale[0] = block.template LoadHalf<offsetof(Block, d)>();
    }
    LoadNibbles<S>(block, offsetof(Block, qs), out->q);
    if constexpr (requires { &Block::qh; }) {
      AddFifthBits<S>(block.LoadWord(offsetof(Block, qh)), out->q);
    }
  }
};

template <class S>  // nibble - 8
using UnpackQ4_0 = UnpackNibbles<S, tensor::BlockQ4_0, TileTraits<3, 1, false, false, 15>>;
template <class S>
using UnpackQ4_1 = UnpackNibbles<S, tensor::BlockQ4_1, TileTraits<0, 1, true, false, 15>>;
template <class S>  // five bits - 16
using UnpackQ5_0 = UnpackNibbles<S, tensor::BlockQ5_0, TileTraits<4, 1, false, false, 31>>;
template <class S>
using UnpackQ5_1 = UnpackNibbles<S, tensor::BlockQ5_1, TileTraits<0, 1, true, false, 31>>;

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_32_H_
