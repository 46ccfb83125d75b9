// TokenMask: which ids of a vocabulary may be drawn, as bits.
#ifndef TANDEM_COMMON_STEP_TOKEN_MASK_H_
#define TANDEM_COMMON_STEP_TOKEN_MASK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace tandem::step {

// A bit for each id, the lowest first, in whole words; the last one's other bits are 0.
using TokenMask = std::vector<uint32_t>;

inline constexpr uint32_t kIdsPerMaskWord = 32;

// Of a mask of so many ids.
inline constexpr size_t MaskWords(uint32_t vocab_size) {
  return (size_t{vocab_size} + kIdsPerMaskWord - 1) / kIdsPerMaskWord;
}
// REQUIRES: id < vocabulary.
inline bool Contains(const TokenMask& mask, TokenId id) {
  const auto bit = static_cast<uint32_t>(id);
  return (mask[bit / kIdsPerMaskWord] >> (bit % kIdsPerMaskWord) & 1) != 0;
}
inline void Insert(TokenId id, TokenMask& mask) {
  const auto bit = static_cast<uint32_t>(id);
  mask[bit / kIdsPerMaskWord] |= uint32_t{1} << (bit % kIdsPerMaskWord);
}
inline bool IsEmpty(const TokenMask& mask) {
  return std::ranges::all_of(mask, [](uint32_t word) { return word == 0; });
}

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_TOKEN_MASK_H_
