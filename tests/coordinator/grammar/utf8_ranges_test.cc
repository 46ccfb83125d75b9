#include "coordinator/grammar/utf8_ranges.h"

#include <algorithm>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace tandem::coordinator::grammar {
namespace {

std::string Utf8(uint32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

// How many of the sequences hold the bytes.
int NumWith(const std::vector<ByteRanges>& sequences, const std::string& bytes) {
  return static_cast<int>(std::ranges::count_if(sequences, [&](const ByteRanges& ranges) {
    if (ranges.size() != bytes.size()) return false;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      if (byte < ranges[i].first || byte > ranges[i].last) return false;
    }
    return true;
  }));
}
size_t NumStrings(const std::vector<ByteRanges>& sequences) {
  size_t all = 0;
  for (const ByteRanges& ranges : sequences) {
    size_t strings = 1;
    for (const ByteRange& range : ranges) strings *= size_t{range.last} - range.first + 1;
    all += strings;
  }
  return all;
}

TEST(Utf8Ranges, AllCharacters) {
  const auto all = Utf8RangesOf({0, UINT32_MAX});
  EXPECT_EQ(NumStrings(all), 0x110000u - 0x800);
  EXPECT_LE(all.size(), 9u);
  EXPECT_EQ(NumWith(all, "\xed\xa0\x80"), 0);  // U+D800
  EXPECT_EQ(NumWith(all, "\xc0\x80"), 0);      // a longer form of U+0000
}

TEST(Utf8Ranges, HoldExactlyTheRange) {
  std::mt19937 random(1);
  const uint32_t edges[] = {0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
  for (int round = 0; round < 2000; ++round) {
    uint32_t first = random() % 0x110000, last = random() % 0x110000;
    if (round % 3 == 0) first = edges[random() % std::size(edges)];
    if (round % 5 == 0) last = edges[random() % std::size(edges)];
    if (first > last) std::swap(first, last);
    const auto ranges = Utf8RangesOf({first, last});
    const uint32_t surrogates = first > 0xdfff || last < 0xd800
                                    ? 0
                                    : std::min(last, 0xdfffu) - std::max(first, 0xd800u) + 1;
    ASSERT_EQ(NumStrings(ranges), last - first + 1 - surrogates) << first << " to " << last;
    for (const uint32_t c : {first, last, first + (last - first) / 2, first - 1, last + 1}) {
      if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) continue;
      ASSERT_EQ(NumWith(ranges, Utf8(c)), first <= c && c <= last ? 1 : 0)
          << c << " in " << first << " to " << last;
    }
  }
}

}  // namespace
}  // namespace tandem::coordinator::grammar
