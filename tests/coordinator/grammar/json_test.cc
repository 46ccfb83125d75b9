#include "coordinator/grammar/json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

Grammar Of(Expression expression) { return JsonGrammar(std::move(expression)); }

TEST(Json, Values) {
  Language values(Of(Rule(kValueRule)));
  for (const char* text :
       {"null", "true", "-0", "12.50e-3", "1E+9", "\"\"", "\"a\\n\\u00e9\\ud83D\\uDe00\xc3\xa9\"",
        "[]", "[ 1, [2],\n  {}]", "{\"a\": [true], \"\": {\"b\":null}}", "{\n  \"a\": 1\n}"}) {
    EXPECT_TRUE(values.Has(text)) << text;
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  }
  for (const char* text : {"",
                           "nul",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "\"",
                           "\"\n\"",
                           "\"\\x\"",
                           "\"\\u00g0\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\xed\xa0\x80\"",
                           "[1,]",
                           "[,1]",
                           "{1: 2}",
                           "{\"a\"}",
                           "{\"a\":1,}",
                           "[1 2]",
                           "  1",
                           "1 "}) {
    EXPECT_FALSE(values.Has(text)) << text;
  }
}

TEST(Json, WhateverIsDrawnIsReadByAParser) {
  Language values(Of(JsonObject()));
  std::mt19937 random(5);
  int whole = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto text = values.Draw(random);
    if (!text.has_value()) continue;
    ++whole;
    ASSERT_TRUE(nlohmann::json::accept(*text)) << *text;
  }
  EXPECT_GT(whole, 500);
}

TEST(Json, StringsOfALength) {
  Language strings(Of(JsonString(1, 2)));
  EXPECT_FALSE(strings.Has("\"\""));
  EXPECT_TRUE(strings.Has("\"\xf0\x9f\x98\x80\\n\""));  // two characters
  EXPECT_FALSE(strings.Has("\"abc\""));
}

TEST(Json, Lists) {
  Language none(Of(InBrackets('[', Listed(Text("1"), 0, 0), ']')));
  EXPECT_TRUE(none.Has("[]"));
  EXPECT_FALSE(none.Has("[1]"));
  Language some(Of(InBrackets('[', Listed(Text("1"), 2, 3), ']')));
  EXPECT_FALSE(some.Has("[1]"));
  EXPECT_TRUE(some.Has("[1,1]"));
  EXPECT_TRUE(some.Has("[1, 1, 1]"));
  EXPECT_FALSE(some.Has("[1,1,1,1]"));
  Language most_two(Of(InBrackets('[', Listed(Text("1"), 0, 2), ']')));
  EXPECT_TRUE(most_two.Has("[]"));
  EXPECT_TRUE(most_two.Has("[1,1]"));
  EXPECT_FALSE(most_two.Has("[1,1,1]"));
}

TEST(Json, QuotedStandsForTheSameCharacters) {
  Language quoted(Of(Quoted(Sequence({Text("a\"\n\xc3\xa9"), Class({{0, 0x7f}})}))));
  EXPECT_TRUE(quoted.Has("a\\\"\\n\xc3\xa9z"));
  EXPECT_TRUE(quoted.Has("a\\\"\\n\xc3\xa9\\\\"));
  EXPECT_TRUE(quoted.Has("a\\\"\\n\xc3\xa9\\u0000"));
  EXPECT_TRUE(quoted.Has("a\\\"\\n\xc3\xa9\x7f"));
  EXPECT_FALSE(quoted.Has("a\\\"\\n\xc3\xa9\\"));
  EXPECT_FALSE(quoted.Has("a\\\"\\n\xc3\xa9\""));
  EXPECT_FALSE(quoted.Has("a\"\nz"));
}

TEST(Json, StringsExceptKeys) {
  Language others(Of(StringExcept({"", "a", "abc", "\xc3\xa9\"", "a\\"})));
  for (const char* text :
       {"\"ab\"", "\"b\"", "\"abcd\"", "\"\xc3\xa9\"", "\"\xc3\xaa\"", "\"aa\""}) {
    EXPECT_TRUE(others.Has(text)) << text;
  }
  for (const char* text :
       {"\"\"", "\"a\"", "\"abc\"", "\"\xc3\xa9\\\"\"", "\"a\\\\\"", "\"\\u0061\""}) {
    EXPECT_FALSE(others.Has(text)) << text;
  }
}

TEST(Json, IntegersBetween) {
  constexpr int64_t kMost = 999'999'999'999'999'999;
  const std::pair<int64_t, int64_t> ranges[] = {{0, 0},    {1, 9},      {-5, 3},        {17, 1234},
                                                {-99, -7}, {100, 105},  {-1000, 1000},  {9, 10},
                                                {5, 5},    {989, 2001}, {-kMost, kMost}};
  for (const auto& [least, most] : ranges) {
    Language integers(Of(IntegerBetween(least, most)));
    for (int64_t i = -2100; i <= 2100; ++i) {
      ASSERT_EQ(integers.Has(std::to_string(i)), least <= i && i <= most)
          << i << " in " << least << " to " << most;
    }
    EXPECT_EQ(integers.Has(std::to_string(kMost)), most == kMost);
    EXPECT_FALSE(integers.Has("-0"));
    EXPECT_FALSE(integers.Has("00"));
    EXPECT_FALSE(integers.Has("01"));
  }
}

}  // namespace
}  // namespace tandem::coordinator::grammar
