#include "common/tokenizer/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/base/utf8.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

using Stops = std::vector<std::string>;

StopMatcher Make(const Stops& stops) { return StopMatcher::Create(stops).value(); }

TEST(StopMatcher, SpansPiecesAndIsLeftOut) {
  StopMatcher matcher = Make({"END"});
  EXPECT_EQ(matcher.Append("text E"), "text ");
  EXPECT_EQ(matcher.Append("N"), "");
  EXPECT_EQ(matcher.Append("D more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), 0);
  EXPECT_EQ(matcher.Append("END"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, GivesBackWhatCanNoLongerMatch) {
  StopMatcher matcher = Make({"aab", "abc"});
  EXPECT_EQ(matcher.Append("aa"), "");
  EXPECT_EQ(matcher.Append("a"), "a");  // "aa" may still become "aab"
  EXPECT_EQ(matcher.held_back_bytes(), 2u);
  EXPECT_EQ(matcher.Append("x"), "aax");
  EXPECT_EQ(matcher.Append("ab"), "");
  EXPECT_EQ(matcher.Flush(), "ab");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, TheFirstCompleteOneThenTheLongest) {
  StopMatcher matcher = Make({"bc", "abcd", "abc"});
  EXPECT_EQ(matcher.Append("xabcd"), "x");
  EXPECT_EQ(matcher.matched(), 2);
}

TEST(StopMatcher, MayEndTheText) {
  StopMatcher matcher = StopMatcher::Create({"END"}, /*include_stop=*/true).value();
  EXPECT_EQ(matcher.Append("text E"), "text ");
  EXPECT_EQ(matcher.Append("ND more"), "END");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, WithoutStopStringsEverythingPasses) {
  StopMatcher matcher = Make({});
  EXPECT_EQ(matcher.Append("anything"), "anything");
  EXPECT_EQ(matcher.held_back_bytes(), 0u);
}

TEST(StopMatcher, RefusesEmptyAndHugeStrings) {
  const absl::Status empty = StopMatcher::Create({"a", ""}).status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(empty.message(), "stop string 1 is empty");
  const Stops huge(2, std::string(StopMatcher::kMaxTotalBytes / 2 + 1, 'a'));
  EXPECT_EQ(StopMatcher::Create(huge).status().message(),
            "the stop strings have 65538 bytes; at most 65536 are allowed");
}

// The longest stop string that is complete at the first byte at which any is; then what may be
// sent.
struct Naive {
  bool stopped = false;
  size_t text_bytes = 0;

  Naive(const std::string& text, const Stops& stops) {
    for (size_t end = 1; end <= text.size() && !stopped; ++end) {
      for (const std::string& stop : stops) {
        if (!text.substr(0, end).ends_with(stop)) continue;
        text_bytes = stopped ? std::min(text_bytes, end - stop.size()) : end - stop.size();
        stopped = true;
      }
    }
    if (stopped) return;
    size_t held = 0;
    for (const std::string& stop : stops) {
      for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
        if (text.ends_with(stop.substr(0, n))) held = std::max(held, n);
      }
    }
    text_bytes = text.size() - held;
  }
};

TEST(StopMatcher, EqualsANaiveSearchAfterEveryPiece) {
  std::mt19937 random(51);
  for (int round = 0; round < 3000; ++round) {
    Stops stops(1 + random() % 4);
    for (std::string& stop : stops) {
      for (size_t n = 1 + random() % 5; n > 0; --n) stop += static_cast<char>('a' + random() % 2);
    }
    StopMatcher matcher = Make(stops);
    std::string text, sent;
    for (int piece = 0; piece < 8; ++piece) {
      std::string more;
      for (size_t n = random() % 4; n > 0; --n) more += static_cast<char>('a' + random() % 3);
      text += more;
      sent += matcher.Append(more);
      const Naive naive(text, stops);
      ASSERT_EQ(matcher.stopped(), naive.stopped) << text;
      ASSERT_EQ(sent, text.substr(0, naive.text_bytes)) << text;
    }
    sent += matcher.Flush();
    const Naive naive(text, stops);
    EXPECT_EQ(sent, naive.stopped ? text.substr(0, naive.text_bytes) : text);
  }
}

TEST(StopMatcher, ValidTextStaysValidInEveryPiece) {
  std::mt19937 random(52);
  for (int round = 0; round < 300; ++round) {
    StopMatcher matcher = Make({"\u4f60\u597d", "\u00e9\u00e9", "ab\u4f60"});
    for (int piece = 0; piece < 10; ++piece) {
      std::string more;
      for (size_t n = random() % 3; n > 0; --n) {
        more += Stops{"\u4f60", "\u00e9", "a", "ab", "\u4f61"}[random() % 5];
      }
      const std::string sent = matcher.Append(more);
      EXPECT_EQ(ValidUtf8Prefix(sent), sent.size());
    }
  }
}

TEST(StopMatcher, ManyStopStrings) {
  Stops stops;
  for (int i = 0; i < 1000; ++i) stops.push_back("stop" + std::to_string(i) + ".");
  StopMatcher matcher = Make(stops);
  EXPECT_EQ(matcher.Append("a stop99"), "a ");
  EXPECT_EQ(matcher.Append("x stop777. b"), "stop99x ");
  EXPECT_EQ(matcher.matched(), 777);
}

}  // namespace
}  // namespace tandem::tokenizer
