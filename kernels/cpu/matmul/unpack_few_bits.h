// Tiles of weights of one or two bits, for few_bit_kernels.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_FEW_BITS_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_FEW_BITS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_few_bits.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_blocks_of_256.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

// Bytes from 1 to 4, two more than values.
template <class S>
using ValuesPlus2 = Tile<S, TileTraits<1, 1, false, false, 4>>;

// Eights: bytes of 0 and 16 stand for -8 and 8.
template <class S>
struct UnpackQ1_0 {
  using Block = tensor::BlockQ1_0;
  using TileT = Tile<S, TileTraits<3, 1, false, false, 16>>;

  struct Head : OneScale<S> {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : OneScale<S>(
              S::Mul(block.template LoadHalf<offsetof(Block, d)>(), S::BroadcastFloat(&kEighth))) {}
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [bits = block.template Words<4>(offsetof(Block, qs))](int j)
        __attribute__((always_inline)) {
      return S::FifthBits(bits[kTile], j);
    };
  }

 private:
  static constexpr float kEighth = 0.125f;
};

template <class S>
struct UnpackQ2_0 {
  using Block = tensor::BlockQ2_0;
  using TileT = ValuesPlus2<S>;
  using Head = HalfScale<S, offsetof(Block, d)>;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [words = block.template Words<4>(offsetof(Block, qs))](int j)
        __attribute__((always_inline)) {
      // Four pairs of bits, then in four bytes.
      const typename S::Int byte =
          S::And(S::ShiftRightBy(words[2 * kTile + j / 4], 8 * (j % 4)), S::Words(0xff));
      const typename S::Int twice = S::Or(byte, S::template ShiftLeft<12>(byte));
      const typename S::Int apart = S::Or(twice, S::template ShiftLeft<6>(twice));
      return S::AddBytes(S::And(apart, S::Bytes(3)), S::Bytes(1));
    };
  }
};

template <class S>
struct UnpackTQ1_0 {
  using Block = tensor::BlockTQ1_0;
  using TileT = ValuesPlus2<S>;
  using Head = HalfScale<S, offsetof(Block, d)>;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    if constexpr (kTile < 5) {
      return [words = block.template Words<8>(offsetof(Block, qs))](int j)
          __attribute__((always_inline)) {
        return Digits(words[j], kTile);
      };
    } else {
      return [
        words = block.template Words<4>(offsetof(Block, qs) + 32),
        last = block.LoadWord(offsetof(Block, qh))
      ](int j) __attribute__((always_inline)) {
        constexpr int kFirst = 2 * (kTile - 5);
        if (kTile == 7 && j >= 4) return Digits(last, j - 4);
        return Digits(words[j % 4], kFirst + j / 4);
      };
    }
  }

 private:
  using Int = typename S::Int;

  // Digit k of each byte, plus 1.
  [[gnu::always_inline]] static inline Int Digits(Int bytes, int k) {
    if (k >= 1) bytes = Thrice(bytes);
    if (k >= 2) bytes = Thrice(bytes);
    if (k >= 3) bytes = Thrice(bytes);
    if (k >= 4) bytes = Thrice(bytes);
    // Bytes times three, of every other one in 16 bits: the digit is above the byte.
    const Int even = S::And(bytes, S::Words(0x00ff00ff));
    const Int odd = S::And(S::template ShiftRight<8>(bytes), S::Words(0x00ff00ff));
    const Int even3 = S::AddWords(even, S::template ShiftLeft<1>(even));
    const Int odd3 = S::AddWords(odd, S::template ShiftLeft<1>(odd));
    const Int digits =
        S::Or(MoveBits<S, 8, 0>(even3, S::Words(0x00030003)), S::And(odd3, S::Words(0x03000300)));
    return S::AddBytes(digits, S::Bytes(1));
  }
  [[gnu::always_inline]] static inline Int Thrice(Int bytes) {
    return S::AddBytes(bytes, S::AddBytes(bytes, bytes));
  }
};

template <class S>
struct UnpackTQ2_0 {
  using Block = tensor::BlockTQ2_0;
  using TileT = ValuesPlus2<S>;
  using Head = HalfScale<S, offsetof(Block, d)>;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [pairs = PairsOfBits<S, kTile>(block, offsetof(Block, qs))](int j)
        __attribute__((always_inline)) {
      return S::AddBytes(pairs(j), S::Bytes(1));
    };
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_FEW_BITS_H_
