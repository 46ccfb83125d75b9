// A tile: 32 columns of as many weight rows as a vector has lanes, unpacked to bytes, one row per
// lane. Formats differ only in how a tile is unpacked; one set of loops multiplies them all.
//
// The order of summation, the same for every format, instruction set and batch size: the products
// of a scale's 32 (or 16) values are summed exactly in integers; these sums go in ascending order
// of columns through one chain acc = fma(float(dot), scale * d, acc), each followed by the minimum
// of the same values if the format has one, acc = fma(-min, d_sum, acc). So a result's bits depend
// only on its own two rows.
#ifndef TANDEM_KERNELS_CPU_MATMUL_TILE_H_
#define TANDEM_KERNELS_CPU_MATMUL_TILE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/matmul/quant_block.h"

namespace tandem::kernels::cpu {

// The meaning of a format's bytes: value = scale * (byte - 2^kOffsetBits) - min.
template <int kOffsetBitsV, int kScalesV, bool kMinsV, bool kSignedV, int kLargestV>
struct TileTraits {
  static constexpr int kOffsetBits = kOffsetBitsV;  // 0: no offset
  static constexpr int kScales = kScalesV;          // per 32 values: 1, or 2 for halves of 16
  static constexpr bool kMins = kMinsV;
  static constexpr bool kSigned = kSignedV;   // bytes are signed (then there is no offset)
  static constexpr int kLargest = kLargestV;  // of the bytes' magnitudes

  static constexpr int kWords = 8 / kScales;  // of a scale's values
  // The largest magnitude of a byte less its offset.
  static constexpr int kOffset = kOffsetBits == 0 ? 0 : 1 << kOffsetBits;
  static constexpr int kLargestValue = kLargest - kOffset > kOffset ? kLargest - kOffset : kOffset;
  // Words whose products of byte pairs with activations (QuantBlock) add up in 16 bits. With an
  // offset they start at minus what it adds up to, as if all bytes were zero: every partial sum,
  // too, is then one of values less their offset.
  static constexpr int kWordsIn16Bits = [] {
    int words = 1;
    while (2 * words <= kWords && 2 * words * 2 * 127 * kLargestValue <= 32767) words *= 2;
    return words;
  }();
};

// For signed bytes w without a product of two signed ones: |w| * x where w >= 0, and else
// |w| * ~x + |w|, since -x = ~x + 1. The sums of the latter |w| do not depend on x. The tile's
// bytes are |w|. Two products of -128 add up to -32768, the least that 16 bits hold.
template <class S>
struct SplitSigns {
  typename S::Int sign[8];  // 0xff where a byte is negative
  typename S::Int negative_sum;
};
struct NoSigns {};

template <class S, class TraitsV, bool kSplitV = TraitsV::kSigned&& S::kSplitsSigns>
struct Tile : std::conditional_t<kSplitV, SplitSigns<S>, NoSigns> {
  using Traits = TraitsV;
  using Unsplit = Tile<S, Traits, false>;
  static constexpr bool kSplit = kSplitV;
  static_assert(!kSplit || Traits::kScales == 1, "the sums are of all words");

  typename S::Int q[8];  // bytes 4j .. 4j+3 of each row
  typename S::Float scale[Traits::kScales * (Traits::kMins ? 2 : 1)];  // then the minimums
};

// Signed bytes with one scale. VNNI needs them unsigned, v + 128; without it they stay signed.
template <class S>
using SignedTile = Tile<S, TileTraits<S::kVnni ? 7 : 0, 1, false, !S::kVnni, S::kVnni ? 255 : 128>>;

// Sets a tile's bytes to the words q.
template <class S, class T>
[[gnu::always_inline]] inline void SetWords(const typename S::Int (&q)[8], T* tile) {
  if constexpr (T::kSplit) {
    typename S::Int pairs = S::Bytes(0);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const typename S::Int sign = S::Signs(q[j]);
      const typename S::Int magnitude = S::Magnitudes(q[j]);
      tile->q[j] = magnitude;
      tile->sign[j] = sign;
      pairs = S::AddPairs(pairs, S::template PairProducts<false>(magnitude, sign));
    }
    tile->negative_sum = S::SubWords(S::Bytes(0), S::SumPairs(pairs));
  } else {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) tile->q[j] = q[j];
  }
}

// The values of a tile's 32 columns, one column of rows each: bit for bit those that the format
// defines.
template <class S, class T>
[[gnu::always_inline]] inline void ExpandTile(const T& tile, typename S::Float* out) {
  static_assert(!T::kSplit);
  using Traits = typename T::Traits;
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const int s = j / Traits::kWords;
    const typename S::Int bytes[4] = {
        S::template Byte<0>(tile.q[j]), S::template Byte<1>(tile.q[j]),
        S::template Byte<2>(tile.q[j]), S::template Byte<3>(tile.q[j])};
    const typename S::Int signed_bytes[4] = {
        S::template SignedByte<0>(tile.q[j]), S::template SignedByte<1>(tile.q[j]),
        S::template SignedByte<2>(tile.q[j]), S::template SignedByte<3>(tile.q[j])};
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      typename S::Int q = Traits::kSigned ? signed_bytes[i] : bytes[i];
      if constexpr (Traits::kOffset > 0) q = S::SubWords(q, S::Words(Traits::kOffset));
      typename S::Float value = S::Mul(tile.scale[s], S::ToFloat(q));
      if constexpr (Traits::kMins) value = S::Sub(value, tile.scale[Traits::kScales + s]);
      out[4 * j + i] = value;
    }
  }
}

// d times the sum of the bytes of part s of kScales.
template <class S, int kScales>
[[gnu::always_inline]] inline typename S::Float SumOf(const QuantBlock& x, int s) {
  if constexpr (kScales == 1) return S::BroadcastFloat(&x.d_sum);
  const typename S::Int sum = S::SubWords(S::Words(0), S::Broadcast(&x.neg_half_sum[s]));
  return S::Mul(S::BroadcastFloat(&x.d), S::ToFloat(sum));
}

// Unpacked tiles of several groups of rows, `step` apart, as products read them.
template <class S, class T>
struct UnpackedTiles {
  using Traits = typename T::Traits;
  static constexpr bool kSplit = T::kSplit;

  [[gnu::always_inline]] typename S::Int Word(int group, int j) const {
    return first[group * step].q[j];
  }
  [[gnu::always_inline]] typename S::Float Scale(int group, int i) const {
    return first[group * step].scale[i];
  }
  [[gnu::always_inline]] typename S::Int Sign(int group, int j) const {
    return first[group * step].sign[j];
  }
  [[gnu::always_inline]] typename S::Int NegativeSum(int group) const {
    return first[group * step].negative_sum;
  }

  const T* first;
  size_t step;
};

// What the integer sums of scale s start at: minus what an offset adds up to, or the |w| that
// complements leave out.
template <class S, int kGroups, int kTokens, class Tiles>
[[gnu::always_inline]] inline void StartDots(const Tiles& tiles, const QuantBlock* x, size_t x_step,
                                             int s, typename S::Int (&dot)[kGroups][kTokens]) {
  using Traits = typename Tiles::Traits;
#pragma GCC unroll 12
  for (int t = 0; t < kTokens; ++t) {
    const QuantBlock& block = x[t * x_step];
    typename S::Int start = S::Bytes(0);
    if constexpr (Traits::kOffsetBits > 0) {
      const int32_t* neg_sum = Traits::kScales == 1 ? &block.neg_sum : &block.neg_half_sum[s];
      start = S::template ShiftLeft<Traits::kOffsetBits>(S::Broadcast(neg_sum));
    }
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      if constexpr (Tiles::kSplit) start = tiles.NegativeSum(g);
      dot[g][t] = start;
    }
  }
}

// What sums in 16 bits start at, with an offset.
template <class S, class Traits, int kGroups, int kTokens>
[[gnu::always_inline]] inline void StartPairs(const QuantBlock* x, size_t x_step, int s,
                                              typename S::Int (&pairs)[kGroups][kTokens]) {
#pragma GCC unroll 12
  for (int t = 0; t < kTokens; ++t) {
    const QuantBlock& block = x[t * x_step];
    const int16_t* const neg_sums =
        Traits::kScales == 1 ? block.neg_pair_sum : block.neg_half_pair_sum[s];
    pairs[0][t] = S::template ShiftPairsLeft<Traits::kOffsetBits>(S::Broadcast(neg_sums));
#pragma GCC unroll 2
    for (int g = 1; g < kGroups; ++g) pairs[g][t] = pairs[0][t];
  }
}

// Products of word j of group g, which is `w`, and a word of activations, added in pairs.
template <class S, class Tiles>
[[gnu::always_inline]] inline typename S::Int PairProducts(const Tiles& tiles, int g, int j,
                                                           typename S::Int w,
                                                           typename S::Int word) {
  if constexpr (Tiles::kSplit) {
    return S::template PairProducts<false>(w, S::Xor(word, tiles.Sign(g, j)));
  } else {
    return S::template PairProducts<Tiles::Traits::kSigned>(w, word);
  }
}

// The integer sums of the products of scale s: dot[g][t] of group g of `tiles` (UnpackedTiles, or
// TileInPlace) and x[t * x_step].
template <class S, int kGroups, int kTokens, class Tiles>
[[gnu::always_inline]] inline void DotTile(const Tiles& tiles, const QuantBlock* x, size_t x_step,
                                           int s, typename S::Int (&dot)[kGroups][kTokens]) {
  using Traits = typename Tiles::Traits;
  constexpr bool kDots = S::kVnni && !Traits::kSigned;
  constexpr bool kStartsInPairs = !kDots && Traits::kOffsetBits > 0;
  constexpr int kIn16Bits = Traits::kWordsIn16Bits;
  static_assert(!kStartsInPairs || kIn16Bits == Traits::kWords);
  static_assert(kDots || Traits::kSigned || 2 * 127 * Traits::kLargest <= 32767, "saturates");
  [[maybe_unused]] typename S::Int pairs[kGroups][kTokens];  // 16-bit sums
  if constexpr (kStartsInPairs) {
    StartPairs<S, Traits>(x, x_step, s, pairs);
  } else {
    StartDots<S>(tiles, x, x_step, s, dot);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Traits::kWords; ++i) {
    const int j = s * Traits::kWords + i;
    typename S::Int w[kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) w[g] = tiles.Word(g, j);
#pragma GCC unroll 12
    for (int t = 0; t < kTokens; ++t) {
      const typename S::Int word = S::Broadcast(x[t * x_step].q + 4 * j);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        if constexpr (kDots) {
          dot[g][t] = S::Dot(dot[g][t], w[g], word);
          continue;
        }
        const typename S::Int products = PairProducts<S>(tiles, g, j, w[g], word);
        const bool first = i % kIn16Bits == 0 && !kStartsInPairs;
        pairs[g][t] = first ? products : S::AddPairs(pairs[g][t], products);
        if (i % kIn16Bits != kIn16Bits - 1) continue;
        const typename S::Int sums = S::SumPairs(pairs[g][t]);
        dot[g][t] = kStartsInPairs ? sums : S::AddWords(dot[g][t], sums);
      }
    }
  }
}

// acc[g][t] += the products of a tile of each group and kTokens blocks of activations (x[0],
// x[x_step], ...).
template <class S, int kGroups, int kTokens, class Tiles>
[[gnu::always_inline]] inline void MultiplyTile(const Tiles& tiles, const QuantBlock* x,
                                                size_t x_step,
                                                typename S::Float (&acc)[kGroups][kTokens]) {
  using Traits = typename Tiles::Traits;
  constexpr int kScales = Traits::kScales;
#pragma GCC unroll 2
  for (int s = 0; s < kScales; ++s) {
    typename S::Int dot[kGroups][kTokens];
    DotTile<S>(tiles, x, x_step, s, dot);
    typename S::Float scale[kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) scale[g] = tiles.Scale(g, s);
#pragma GCC unroll 12
    for (int t = 0; t < kTokens; ++t) {
      const typename S::Float d = S::BroadcastFloat(&x[t * x_step].d);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        acc[g][t] = S::MulAdd(S::ToFloat(dot[g][t]), S::Mul(scale[g], d), acc[g][t]);
      }
    }
    if constexpr (Traits::kMins) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) {
        const typename S::Float d_sum = SumOf<S, kScales>(x[t * x_step], s);
#pragma GCC unroll 2
        for (int g = 0; g < kGroups; ++g) {
          acc[g][t] = S::NegMulAdd(tiles.Scale(g, kScales + s), d_sum, acc[g][t]);
        }
      }
    }
  }
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_TILE_H_
