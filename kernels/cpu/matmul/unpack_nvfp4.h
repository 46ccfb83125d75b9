// Tiles of NVFP4, for codebook_kernels.cc: two to a block.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_NVFP4_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_NVFP4_H_

#include <cstddef>

#include "common/tensor/blocks_of_64.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackNVFP4 {
  using Block = tensor::BlockNVFP4;
  using Int = typename S::Int;
  // Values of -12 to 12, plus 16; a scale per 16 values.
  using TileT = Tile<S, TileTraits<4, 2, false, false, 28>>;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : scales(WithoutNaN(S::And(block.LoadWord(offsetof(Block, d)), S::Bytes(0x7f)))) {}
    // A scale's bits are those of a half from its eighth one on: subnormals, too, have the value of
    // that half but for the bias of its exponent.
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      const Int low = MoveBits<S, 16 * kTile, 7>(scales, S::Words(0x3f80));
      const Int high = MoveBits<S, 16 * kTile + 8, 23>(scales, S::Words(0x3f800000));
      S::HalvesToFloats(S::Or(low, high), out, out + 1);
      const typename S::Float bias = S::BroadcastFloat(&kHalfOfBias);
      out[0] = S::Mul(out[0], bias);
      out[1] = S::Mul(out[1], bias);
    }

    Int scales;  // of each row, a byte each, below 0x7f
  };

  // Word j of a tile: of its first 16 values the low halves of two words, then their high halves.
  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [
      words = block.template Words<4>(offsetof(Block, qs) + 16 * kTile),
      lookup = CodebookLookup<S, typename TileT::Traits>(tensor::kMxfp4Codebook)
    ](int j) __attribute__((always_inline)) {
      const Int pair = words[j / 4 * 2 + j % 2];
      return lookup(S::And(j % 4 < 2 ? pair : S::template ShiftRight<4>(pair), S::Bytes(15)));
    };
  }

 private:
  // 2^(15 - 7), halved: the codebook's values are doubled.
  static constexpr float kHalfOfBias = 128.0f;

  // Bytes of 0x7f become 0.
  [[gnu::always_inline]] static inline Int WithoutNaN(Int bytes) {
    const Int one = S::Bytes(1);
    const Int is_nan = S::And(S::template ShiftRight<7>(S::AddBytes(bytes, one)), one);
    return S::SubWords(bytes, S::SubWords(S::template ShiftLeft<7>(is_nan), is_nan));
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_NVFP4_H_
