// Tiles of K-quants, eight to a block, for blocks_of_256.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_256_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_256_H_

#include "common/tensor/blocks_of_256.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

// The scales and minimums of Q4_K and Q5_K rows: the 16 bytes that begin each block, d and dmin
// (halves) and KScales.
template <class S>
struct KScalesHead {
  using Int = typename S::Int;
  using Float = typename S::Float;

  template <class B>
  [[gnu::always_inline]] explicit KScalesHead(const B& block) {
    Int head[4];  // d and dmin, then the three words of scales
    block.Load16(0, head);
    S::HalvesToFloats(head[0], &d, &dmin);
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    const Int six = S::Bytes(0x3f);
    scale[0] = S::And(head[1], six);
    scale[1] = S::Or(S::And(head[3], low4), S::And(S::template ShiftRight<2>(head[1]), high2));
    min[0] = S::And(head[2], six);
    min[1] = S::Or(S::And(S::template ShiftRight<4>(head[3]), low4),
                   S::And(S::template ShiftRight<2>(head[2]), high2));
  }

  template <int kTile>
  [[gnu::always_inline]] void Scales(Float* out) const {
    constexpr int kWord = kTile / 4, kByte = kTile % 4;
    out[0] = S::Mul(d, S::ToFloat(S::template Byte<kByte>(scale[kWord])));
    out[1] = S::Mul(dmin, S::ToFloat(S::template Byte<kByte>(min[kWord])));
  }

  Float d, dmin;
  // Byte g of scale[h] and min[h] belongs to group 4h + g (packed as in tensor::KScales).
  Int scale[2], min[2];
};

// The two-bit values of tile kTile in the 64 bytes at `at` of each row's block: of each 32 bytes,
// value 32 k + l lies in bits 2 k and 2 k + 1 of byte l.
template <class S, int kTile, class B>
[[gnu::always_inline]] inline auto PairsOfBits(const B& block, size_t at) {
  return [words = block.template Words<8>(at + 32 * (kTile / 4))](int j)
      __attribute__((always_inline)) {
    return MoveBits<S, 2 * (kTile % 4), 0>(words[j], S::Bytes(3));
  };
}

template <class S>
struct UnpackQ2_K {
  using Block = tensor::BlockQ2_K;
  using Int = typename S::Int;
  using TileT = Tile<S, TileTraits<0, 2, true, false, 3>>;  // scale and minimum per 16 values

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block) {
      S::HalvesToFloats(block.LoadWord(offsetof(Block, d)), &d, &dmin);
      block.Load16(offsetof(Block, scales), words);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      constexpr int kByte = 2 * (kTile % 2);
      const Int low4 = S::Bytes(0x0f);
      const Int scales = S::And(words[kTile / 2], low4);
      const Int mins = S::And(S::template ShiftRight<4>(words[kTile / 2]), low4);
      out[0] = S::Mul(d, S::ToFloat(S::template Byte<kByte>(scales)));
      out[1] = S::Mul(d, S::ToFloat(S::template Byte<kByte + 1>(scales)));
      out[2] = S::Mul(dmin, S::ToFloat(S::template Byte<kByte>(mins)));
      out[3] = S::Mul(dmin, S::ToFloat(S::template Byte<kByte + 1>(mins)));
    }

    typename S::Float d, dmin;
    Int words[4];  // of scales (low halves of bytes) and minimums
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return PairsOfBits<S, kTile>(block, offsetof(Block, qs));
  }
};

template <class S>
struct UnpackQ3_K {
  using Block = tensor::BlockQ3_K;
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT =
      Tile<S, TileTraits<2, 2, false, false, 7>>;  // three bits - 4, a scale per 16 values

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : d(block.template LoadHalf<offsetof(Block, d)>()) {
      // The last four bytes of qs, then the twelve of scales; d comes last in the block.
      Int words[4];
      block.Load16(offsetof(Block, scales) - 4, words);
      const Int low4 = S::Bytes(0x0f);
      const Int high2 = S::Bytes(0x30);
      six[0] = S::Or(MoveBits<S, 0, 0>(words[1], low4), MoveBits<S, 0, 4>(words[3], high2));
      six[1] = S::Or(MoveBits<S, 0, 0>(words[2], low4), MoveBits<S, 2, 4>(words[3], high2));
      six[2] = S::Or(MoveBits<S, 4, 0>(words[1], low4), MoveBits<S, 4, 4>(words[3], high2));
      six[3] = S::Or(MoveBits<S, 4, 0>(words[2], low4), MoveBits<S, 6, 4>(words[3], high2));
    }

    template <int kTile>
    [[gnu::always_inline]] void Scales(Float* out) const {
      constexpr int kByte = 2 * (kTile % 2);
      out[0] = S::Mul(d, Less32(S::template Byte<kByte>(six[kTile / 2])));
      out[1] = S::Mul(d, Less32(S::template Byte<kByte + 1>(six[kTile / 2])));
    }

    Float d;
    Int six[4];  // byte j of word w: scale 4w + j, plus 32
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [
      low = PairsOfBits<S, kTile>(block, offsetof(Block, qs)),
      third = block.template Words<8>(offsetof(Block, hmask))
    ](int j) __attribute__((always_inline)) {
      return S::Or(low(j), MoveBits<S, kTile, 2>(third[j], S::Bytes(4)));
    };
  }

 private:
  [[gnu::always_inline]] static inline Float Less32(Int a) {
    return S::ToFloat(S::SubWords(a, S::Words(32)));
  }
};

// The nibbles of tile kTile of Q4_K and Q5_K: two tiles share 32 bytes.
template <class S, int kTile, class B>
[[gnu::always_inline]] inline auto NibblesOfGroup(const B& block, size_t at) {
  return [words = block.template Words<8>(at + 32 * (kTile / 2))](int j)
      __attribute__((always_inline)) {
    return MoveBits<S, 4 * (kTile % 2), 0>(words[j], S::Bytes(15));
  };
}

template <class S>
struct UnpackQ4_K {
  using Block = tensor::BlockQ4_K;
  using TileT = Tile<S, TileTraits<0, 1, true, false, 15>>;
  using Head = KScalesHead<S>;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return NibblesOfGroup<S, kTile>(block, offsetof(Block, qs));
  }
};

template <class S>
struct UnpackQ5_K {
  using Block = tensor::BlockQ5_K;
  using TileT = Tile<S, TileTraits<0, 1, true, false, 31>>;
  using Head = KScalesHead<S>;

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    return [
      low = NibblesOfGroup<S, kTile>(block, offsetof(Block, qs)),
      fifth = block.template Words<8>(offsetof(Block, qh))
    ](int j) __attribute__((always_inline)) {
      return S::Or(low(j), MoveBits<S, kTile, 4>(fifth[j], S::Bytes(0x10)));
    };
  }
};

template <class S>
struct UnpackQ6_K {
  using Block = tensor::BlockQ6_K;
  using Int = typename S::Int;
  using TileT =
      Tile<S, TileTraits<5, 2, false, false, 63>>;  // six bits - 32, a scale per 16 values

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : d(block.template LoadHalf<offsetof(Block, d)>()) {
      block.Load16(offsetof(Block, scales), scales);
    }

    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      constexpr int kByte = 2 * (kTile % 2);
      out[0] = S::Mul(d, S::ToFloat(S::template SignedByte<kByte>(scales[kTile / 2])));
      out[1] = S::Mul(d, S::ToFloat(S::template SignedByte<kByte + 1>(scales[kTile / 2])));
    }

    typename S::Float d;
    Int scales[4];
  };

  // Of each half of a block, tiles 0 and 2 are the low and high nibbles of the same 32 bytes of ql,
  // tiles 1 and 3 of the next 32; bits 2 t and 2 t + 1 of qh belong to tile t.
  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& /*head*/) {
    constexpr int kHalf = kTile / 4, kOfHalf = kTile % 4;
    constexpr size_t kLowAt = offsetof(Block, ql) + 64 * kHalf + 32 * (kOfHalf % 2);
    return [
      low = block.template Words<8>(kLowAt),
      high = block.template Words<8>(offsetof(Block, qh) + 32 * kHalf)
    ](int j) __attribute__((always_inline)) {
      return S::Or(MoveBits<S, 4 * (kOfHalf / 2), 0>(low[j], S::Bytes(15)),
                   MoveBits<S, 2 * kOfHalf, 4>(high[j], S::Bytes(0x30)));
    };
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_256_H_
