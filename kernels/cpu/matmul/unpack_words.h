// Shared by several formats. Words are lanes of four bytes, one row per lane; word j holds values
// (or bytes) 4j .. 4j+3.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_WORDS_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/tensor/codebook.h"

namespace tandem::kernels::cpu {

// The scale of all values of a block.
template <class S>
struct OneScale {
  [[gnu::always_inline]] explicit OneScale(typename S::Float of_block) : scale(of_block) {}
  template <int kTile>
  [[gnu::always_inline]] void Scales(typename S::Float* out) const {
    out[0] = scale;
  }

  typename S::Float scale;
};

// The same, a half at kAt of each row's block.
template <class S, size_t kAt>
struct HalfScale : OneScale<S> {
  template <class B>
  [[gnu::always_inline]] explicit HalfScale(const B& block)
      : OneScale<S>(block.template LoadHalf<kAt>()) {}
};

// Word j of the 32 four-bit values in four words: byte i of them holds value i in its low half and
// value i + 16 in its high half.
template <class S, class Words>
[[gnu::always_inline]] inline typename S::Int NibblesOf(const Words& words, int j) {
  const typename S::Int low = S::Bytes(15);
  return j < 4 ? S::And(words[j], low) : S::And(S::template ShiftRight<4>(words[j - 4]), low);
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

// The scale and the offset of value = d * q + m, two halves at `at` of each row's block: to a
// tile's scale and minimum, which is -m.
template <class S, class B>
[[gnu::always_inline]] inline void LoadScaleAndOffset(const B& block, size_t at,
                                                      typename S::Float* scale) {
  constexpr int32_t kSignOfHigh = std::numeric_limits<int32_t>::min();
  S::HalvesToFloats(S::Xor(block.LoadWord(at), S::Words(kSignOfHigh)), scale, scale + 1);
}

// The values of a codebook's indices (bytes), plus the offset of a tile's bytes.
template <class S, class Traits>
class CodebookLookup {
 public:
  [[gnu::always_inline]] explicit CodebookLookup(const tensor::Codebook& codebook)
      : table_(S::AddBytes(S::Table(codebook.value), S::Bytes(Traits::kOffset))) {}

  [[gnu::always_inline]] typename S::Int operator()(typename S::Int indices) const {
    return S::Lookup(table_, indices);
  }

 private:
  typename S::Int table_;
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_WORDS_H_
