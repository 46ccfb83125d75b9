#include "coordinator/grammar/utf8_ranges.h"

#include <algorithm>

#include "coordinator/grammar/characters.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr uint32_t kLastSurrogate = 0xdfff;
constexpr uint32_t kFirstSurrogate = 0xd800;
// The last code points of one, two, three and four bytes.
constexpr uint32_t kLastOfLength[] = {0x7f, 0x7ff, 0xffff, kLastCharacter};
// What the first byte has above its bits of the code point.
constexpr uint8_t kMark[] = {0, 0xc0, 0xe0, 0xf0};

// Ranges whose code points have `length` + 1 bytes. Where more than the last byte differs, ends
// that do not begin or complete a run of 64 (or 64 * 64, ...) are split off.
void Split(uint32_t first, uint32_t last, int length, std::vector<ByteRanges>& out) {
  for (int low = 1; low <= length; ++low) {
    const uint32_t mask = (1u << (6 * low)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      Split(first, first | mask, length, out);
      return Split((first | mask) + 1, last, length, out);
    }
    if ((last & mask) != mask) {
      Split(first, (last & ~mask) - 1, length, out);
      return Split(last & ~mask, last, length, out);
    }
  }
  ByteRanges bytes;
  for (int i = length; i >= 0; --i) {
    const int shift = 6 * i;
    const uint8_t mark = i == length ? kMark[length] : 0x80;
    const uint32_t bits = i == length ? 0xff : 0x3f;
    bytes.push_back({static_cast<uint8_t>(mark | (first >> shift & bits)),
                     static_cast<uint8_t>(mark | (last >> shift & bits))});
  }
  out.push_back(std::move(bytes));
}

void AddWithoutSurrogates(uint32_t first, uint32_t last, std::vector<ByteRanges>& out) {
  uint32_t from = 0;
  for (int length = 0; length < 4; from = kLastOfLength[length++] + 1) {
    const uint32_t begin = std::max(first, from), end = std::min(last, kLastOfLength[length]);
    if (begin <= end) Split(begin, end, length, out);
  }
}

}  // namespace

std::vector<ByteRanges> Utf8RangesOf(CharacterRange range) {
  std::vector<ByteRanges> out;
  const uint32_t last = std::min(range.last, kLastCharacter);
  if (range.first < kFirstSurrogate) {
    AddWithoutSurrogates(range.first, std::min(last, kFirstSurrogate - 1), out);
  }
  if (last > kLastSurrogate) {
    AddWithoutSurrogates(std::max(range.first, kLastSurrogate + 1), last, out);
  }
  return out;
}

}  // namespace tandem::coordinator::grammar
