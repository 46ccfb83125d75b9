// What tiles of weights that are entries of grids have in common: look-ups, signs, scales.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_GRIDS_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_GRIDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_grids.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

// Entries with signs are signed bytes, which VNNI needs unsigned. Those of IQ3_S are small enough
// for 16-bit sums with an offset.
template <class S, int kScales, int kLargest>
using SignedEntries = Tile<
    S, TileTraits<S::kVnni ? 6 : 0, kScales, false, !S::kVnni, S::kVnni ? kLargest + 64 : kLargest>,
    !S::kVnni && S::kSplitsSigns && kScales == 1>;
template <class S, int kScales>
using EntriesPlus16 = Tile<S, TileTraits<4, kScales, false, false, 31>>;

// A tile's words, all looked up at once.
template <class S>
struct EightWords {
  [[gnu::always_inline]] typename S::Int operator()(int j) const { return word[j]; }

  typename S::Int word[8];
};

// The entries, of eight values each, whose indices index(run) returns.
template <class S, class Block, class IndexOf>
[[gnu::always_inline]] inline EightWords<S> LookUpEights(const IndexOf& index) {
  EightWords<S> words;
#pragma GCC unroll 4
  for (int run = 0; run < 4; ++run) {
    S::LookUpPair(Block::kGrid.words, index(run), words.word + 2 * run);
  }
  return words;
}
// Of four values.
template <class S, class Block, class IndexOf>
[[gnu::always_inline]] inline EightWords<S> LookUpFours(const IndexOf& index) {
  EightWords<S> words;
#pragma GCC unroll 8
  for (int run = 0; run < 8; ++run) {
    words.word[run] = S::LookUpWord(Block::kGrid.words, index(run));
  }
  return words;
}

// Byte i of word j is negated where bit 4 j + i of a row's `signs` is set; then the offset of the
// tile's bytes is added.
template <class S, class TileT>
[[gnu::always_inline]] inline EightWords<S> WithSigns(EightWords<S> words, typename S::Int signs) {
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    words.word[j] = S::Negate(words.word[j], signs, j);
    if constexpr (TileT::Traits::kOffset > 0) {
      words.word[j] = S::AddBytes(words.word[j], S::Bytes(TileT::Traits::kOffset));
    }
  }
  return words;
}

// The eighth sign of each byte, which makes the number of set ones even (tensor::WithEighthSign).
template <class S>
[[gnu::always_inline]] inline typename S::Int WithEighthSigns(typename S::Int sevens) {
  struct Parities {
    int8_t of[16];
  };
  static constexpr Parities kParities = [] {
    Parities parities = {};
    for (uint32_t i = 0; i < 16; ++i) {
      parities.of[i] = static_cast<int8_t>(std::popcount(i) % 2 * -128);
    }
    return parities;
  }();
  const typename S::Int table = S::Table(kParities.of), low = S::Bytes(15);
  const typename S::Int odd =
      S::Xor(S::Lookup(table, S::And(sevens, low)),
             S::Lookup(table, S::And(S::template ShiftRight<4>(sevens), low)));
  return S::Or(sevens, odd);
}
// All signs of four times seven bits, the lowest of a word.
template <class S>
[[gnu::always_inline]] inline typename S::Int SignsOfSevens(typename S::Int words) {
  return WithEighthSigns<S>(S::Or(
      S::Or(MoveBits<S, 0, 0>(words, S::Words(0x7f)), MoveBits<S, 0, 1>(words, S::Words(0x7f00))),
      S::Or(MoveBits<S, 0, 2>(words, S::Words(0x7f0000)),
            MoveBits<S, 0, 3>(words, S::Words(0x7f000000)))));
}

// d * kUnit; LoadUnit: d is the half of each row's block.
template <class S, class Block>
[[gnu::always_inline]] inline typename S::Float TimesUnit(typename S::Float d) {
  static constexpr float kUnit = Block::kUnit;
  return S::Mul(d, S::BroadcastFloat(&kUnit));
}
template <class S, class Block, class B>
[[gnu::always_inline]] inline typename S::Float LoadUnit(const B& block) {
  return TimesUnit<S, Block>(block.template LoadHalf<offsetof(Block, d)>());
}
// d * (2 s + 1), s the kBits bits of each lane from kFrom on.
template <class S, int kFrom, int kBits>
[[gnu::always_inline]] inline typename S::Float OddScale(typename S::Float d,
                                                         typename S::Int words) {
  const typename S::Int twice = MoveBits<S, kFrom, 1>(words, S::Words((2 << kBits) - 2));
  return S::Mul(d, S::ToFloat(S::Or(twice, S::Words(1))));
}
// Of 16 values each, four bits in byte kTile of two words.
template <class S, int kTile>
[[gnu::always_inline]] inline void ScalesOfHalves(typename S::Float d, const typename S::Int* words,
                                                  typename S::Float* out) {
  constexpr int kFrom = 8 * (kTile % 4);
  out[0] = OddScale<S, kFrom, 4>(d, words[kTile / 4]);
  out[1] = OddScale<S, kFrom + 4, 4>(d, words[kTile / 4]);
}

// Bits [from, from + n) of each lane, n the bits of `mask`.
template <class S>
[[gnu::always_inline]] inline typename S::Int BitsFrom(typename S::Int words, int from,
                                                       int32_t mask) {
  return S::And(S::ShiftRightBy(words, from), S::Words(mask));
}
// Index `run`: a byte of `low` with the bits of kHigh above it, which begin `step * run` into
// `high`; that has bit 0 of the first in bit 8.
template <class S, int kHigh>
[[gnu::always_inline]] inline typename S::Int WideIndex(typename S::Int low, typename S::Int high,
                                                        int run, int step) {
  return S::Or(BitsFrom<S>(low, 8 * run, 0xff), BitsFrom<S>(high, step * run, kHigh << 8));
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_GRIDS_H_
