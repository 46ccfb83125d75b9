// Ranges of code points as sequences of ranges of bytes.
#ifndef TANDEM_COORDINATOR_GRAMMAR_UTF8_RANGES_H_
#define TANDEM_COORDINATOR_GRAMMAR_UTF8_RANGES_H_

#include <cstdint>
#include <vector>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

struct ByteRange {
  uint8_t first = 0;
  uint8_t last = 0;
  bool operator==(const ByteRange&) const = default;
};

// One to four ranges, a byte each.
using ByteRanges = std::vector<ByteRange>;

// Byte sequences that together are the UTF-8 forms of the range, without surrogates; no two of
// them have a string in common. Code points beyond U+10FFFF do not exist.
std::vector<ByteRanges> Utf8RangesOf(CharacterRange range);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_UTF8_RANGES_H_
