#include "common/base/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

namespace tandem {
namespace {

#define FFFD "\xef\xbf\xbd"

TEST(Utf8Stream, OneReplacementPerMaximalSubpart) {
  EXPECT_EQ(RepairedUtf8("plain \u00e9\u4f60\U0001f680"), "plain \u00e9\u4f60\U0001f680");
  EXPECT_EQ(RepairedUtf8("\x80"), FFFD);
  EXPECT_EQ(RepairedUtf8("\xc0\x80"), FFFD FFFD);           // overlong
  EXPECT_EQ(RepairedUtf8("\xe0\x80\x80"), FFFD FFFD FFFD);  // overlong
  EXPECT_EQ(RepairedUtf8("\xed\xa0\x80"), FFFD FFFD FFFD);  // a surrogate
  EXPECT_EQ(RepairedUtf8("\xf5\x80"), FFFD FFFD);           // above U+10FFFF
  EXPECT_EQ(RepairedUtf8("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD);
  EXPECT_EQ(RepairedUtf8("\xf0\x9f\x9a"
                         "x"),
            FFFD "x");
  EXPECT_EQ(RepairedUtf8("\xe4\xbd"), FFFD);
  EXPECT_EQ(RepairedUtf8("\xe4\xe4\xbd\xa0"), FFFD "\u4f60");
  // The example of the Unicode standard, table 3-11.
  EXPECT_EQ(RepairedUtf8("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
                         "A"),
            FFFD FFFD FFFD FFFD "A");
}

TEST(Utf8Stream, HoldsBackOnlyWhatMayStillBecomeACharacter) {
  Utf8Stream stream;
  std::string text;
  stream.Append("a\xf0\x9f", &text);
  EXPECT_EQ(text, "a");
  stream.Append("\x9a", &text);
  EXPECT_EQ(text, "a");
  stream.Append("\x80", &text);
  EXPECT_EQ(text, "a\U0001f680");
  stream.Append("\xe0", &text);
  stream.Append("\x80", &text);  // can never follow 0xe0
  EXPECT_EQ(text, "a\U0001f680" FFFD FFFD);
}

std::string RandomBytes(std::mt19937& random) {
  std::string bytes;
  for (size_t n = random() % 12; n > 0; --n) {
    bytes += std::array{"a", " ", "\u00e9", "\u4f60", "\U0001f680"}[random() % 5];
  }
  for (size_t n = random() % 6; n > 0 && !bytes.empty(); --n) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  return bytes;
}

TEST(Utf8Stream, SplitsMakeNoDifferenceAndOutputIsValid) {
  std::mt19937 random(31);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = RandomBytes(random);
    const std::string whole = RepairedUtf8(bytes);
    EXPECT_EQ(ValidUtf8Prefix(whole), whole.size());
    EXPECT_EQ(whole == bytes, ValidUtf8Prefix(bytes) == bytes.size());
    Utf8Stream stream;
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
      const size_t length = 1 + random() % 4;
      stream.Append(std::string_view(bytes).substr(at, length), &text);
      EXPECT_EQ(ValidUtf8Prefix(text), text.size());
      at += length;
    }
    stream.Flush(&text);
    EXPECT_EQ(text, whole);
  }
}

TEST(ValidUtf8Prefix, NamesTheFirstBadByte) {
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix(std::string_view("a\0b", 3)), 3u);
  EXPECT_EQ(ValidUtf8Prefix("abcdefgh\u00e9\xff"), 10u);
  EXPECT_EQ(ValidUtf8Prefix("ab\xe4\xbd"), 2u);
  EXPECT_EQ(ValidUtf8Prefix("\xed\x9f\xbf"), 3u);  // U+D7FF, the last before the surrogates
  EXPECT_EQ(ValidUtf8Prefix("\xed\xa0\x80"), 0u);
  EXPECT_EQ(ValidUtf8Prefix("\xf4\x8f\xbf\xbf"), 4u);  // U+10FFFF
}

}  // namespace
}  // namespace tandem
