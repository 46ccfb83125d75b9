#include "coordinator/grammar/characters.h"

#include <algorithm>

#include "common/base/utf8.h"

namespace tandem::coordinator::grammar {

uint32_t NextCharacter(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(text[*at + i]); };
  const size_t size = Utf8Length(static_cast<uint8_t>(byte(0)));
  uint32_t character = size == 1 ? byte(0) : byte(0) & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) character = character << 6 | (byte(i) & 0x3f);
  *at += size;
  return character;
}

void AppendCharacter(uint32_t character, std::string* out) {
  const auto add = [&](uint32_t mark, uint32_t bits) { *out += static_cast<char>(mark | bits); };
  if (character < 0x80) return add(0, character);
  if (character < 0x800) {
    add(0xc0, character >> 6);
  } else {
    if (character < 0x10000) {
      add(0xe0, character >> 12);
    } else {
      add(0xf0, character >> 18);
      add(0x80, character >> 12 & 0x3f);
    }
    add(0x80, character >> 6 & 0x3f);
  }
  add(0x80, character & 0x3f);
}

CharacterRanges Normalized(CharacterRanges ranges) {
  std::ranges::sort(ranges, {}, &CharacterRange::first);
  CharacterRanges out;
  for (const CharacterRange& range : ranges) {
    if (out.empty() || range.first > out.back().last + 1) {
      out.push_back(range);
    } else {
      out.back().last = std::max(out.back().last, range.last);
    }
  }
  return out;
}

CharacterRanges Complement(const CharacterRanges& ranges) {
  CharacterRanges out;
  uint32_t first = 0;  // of those that are not in the ranges so far
  for (const CharacterRange& range : ranges) {
    if (range.first > first) out.push_back({first, range.first - 1});
    first = range.last + 1;
  }
  if (first <= kLastCharacter) out.push_back({first, kLastCharacter});
  return out;
}

}  // namespace tandem::coordinator::grammar
