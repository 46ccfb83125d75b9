// Shared by the unpacking of several formats. Words are lanes of four bytes, one row per lane; word
// j of an array holds values (or bytes) 4j .. 4j+3.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_WORDS_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_WORDS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/codebook.h"

namespace tandem::kernels::cpu {

// The 32 four-bit values of the 16 bytes at `at` of each row's block: byte j holds value j in its
// low half and value j + 16 in its high half.
template <class S, class B>
[[gnu::always_inline]] inline void LoadNibbles(const B& block, size_t at, typename S::Int* q) {
  typename S::Int words[4];
  block.Load16(at, words);
  const typename S::Int low = S::Bytes(15);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    q[j] = S::And(words[j], low);
    q[j + 4] = S::And(S::template ShiftRight<4>(words[j]), low);
  }
}

// q[j] |= 16 where bit i of the lane of `fifth` is set, for each value i.
template <class S>
[[gnu::always_inline]] inline void AddFifthBits(typename S::Int fifth, typename S::Int* q) {
  q[0] = S::Or(q[0], S::template FifthBits<0>(fifth));
  q[1] = S::Or(q[1], S::template FifthBits<1>(fifth));
  q[2] = S::Or(q[2], S::template FifthBits<2>(fifth));
  q[3] = S::Or(q[3], S::template FifthBits<3>(fifth));
  q[4] = S::Or(q[4], S::template FifthBits<4>(fifth));
  q[5] = S::Or(q[5], S::template FifthBits<5>(fifth));
  q[6] = S::Or(q[6], S::template FifthBits<6>(fifth));
  q[7] = S::Or(q[7], S::template FifthBits<7>(fifth));
}

// Bits [kFrom, kFrom + width) of each byte, moved to [kTo, ..); `mask` has the target bits.
template <class S, int kFrom, int kTo>
[[gnu::always_inline]] inline typename S::Int MoveBits(typename S::Int words,
                                                       typename S::Int mask) {
  if constexpr (kFrom < kTo) {
    return S::And(S::template ShiftLeft<kTo - kFrom>(words), mask);
  } else if constexpr (kFrom > kTo) {
    return S::And(S::template ShiftRight<kFrom - kTo>(words), mask);
  } else {
    return S::And(words, mask);
  }
}

// The two-bit values of tile kTile of the eight in the 64 bytes at `at` of each row's block: of
// each 32 bytes, value 32 k + l lies in bits 2 k and 2 k + 1 of byte l.
template <class S, int kTile, class B>
[[gnu::always_inline]] inline void LoadPairOfBits(const B& block, size_t at, typename S::Int* q) {
  typename S::Int words[8];
  block.Load32(at + 32 * (kTile / 4), words);
  const typename S::Int low2 = S::Bytes(3);
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) q[j] = MoveBits<S, 2 * (kTile % 4), 0>(words[j], low2);
}

// The scale and the offset of value = d * q + m, two halves at `at` of each row's block: to a
// tile's scale and minimum, which is -m.
template <class S, class B>
[[gnu::always_inline]] inline void LoadScaleAndOffset(const B& block, size_t at,
                                                      typename S::Float* scale) {
  const typename S::Int word = block.LoadWord(at);
  scale[0] = S::HalfToFloat(word);
  scale[1] = S::HalfToFloat(S::Xor(S::template ShiftRight<16>(word), S::Words(0x8000)));
}

// The values of a codebook's indices (bytes): signed, or plus 128 if the kernels need unsigned
// bytes.
template <class S>
class CodebookLookup {
 public:
  [[gnu::always_inline]] explicit CodebookLookup(const tensor::Codebook& codebook)
      : table_(S::kVnni ? S::Xor(S::Table(codebook.value), S::Bytes(0x80))
                        : S::Table(codebook.value)) {}

  // Replaces the indices of 32 values.
  [[gnu::always_inline]] void Run(typename S::Int* q) const {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) q[j] = S::Lookup(table_, q[j]);
  }

 private:
  typename S::Int table_;
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_WORDS_H_
