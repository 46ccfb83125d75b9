#include "coordinator/grammar/regex.h"

#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

absl::StatusOr<Grammar> GrammarOf(std::string_view pattern, RegexUse use) {
  auto expression = ExpressionOfRegex(pattern, use);
  if (!expression.ok()) return expression.status();
  Grammar grammar;
  grammar.rules.push_back(*std::move(expression));
  return grammar;
}
std::string Refusal(std::string_view pattern) {
  const auto expression = ExpressionOfRegex(pattern, RegexUse::kWhole);
  EXPECT_FALSE(expression.ok()) << pattern;
  return std::string(expression.status().message());
}

struct Case {
  std::string_view pattern;
  std::vector<std::string> matches;
  std::vector<std::string> others;
};

void Expect(const std::vector<Case>& cases, RegexUse use) {
  for (const auto& [pattern, matches, others] : cases) {
    SCOPED_TRACE(pattern);
    Language language(GrammarOf(pattern, use));
    for (const std::string& text : matches) EXPECT_TRUE(language.Has(text)) << text;
    for (const std::string& text : others) EXPECT_FALSE(language.Has(text)) << text;
  }
}

TEST(Regex, WholeTexts) {
  Expect({{"", {""}, {"a"}},
          {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
          {"^ab$|^c", {"ab", "c"}, {"", "cc"}},
          {"(a|b)*c", {"c", "abbac"}, {"", "ab"}},
          {"(?:ab)+", {"ab", "abab"}, {"", "aba"}},
          {"(?<n_1>a)(?P<m>b)?", {"a", "ab"}, {"b"}},
          {"a{2}b{1,}c{0,2}", {"aab", "aabbcc"}, {"ab", "aaabc", "aabccc"}},
          {"a+?b*?c??d{1,2}?", {"ad", "aabbcdd"}, {"d", "ac"}},
          {"()*a(|b){2}", {"a", "ab", "abb"}, {"abbb"}},
          {".", {"a", "\r", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"", "\n", "\xc3"}},
          {"\xc3\xa9+", {"\xc3\xa9\xc3\xa9"}, {"\xc3\xa9\xa9"}},
          {"a}]b", {"a}]b"}, {}}},
         RegexUse::kWhole);
}

TEST(Regex, Classes) {
  Expect({{"[a-cx]", {"a", "b", "x"}, {"d", "ab"}},
          {"[^a-c]", {"d", "\n", "\xc3\xa9"}, {"a"}},
          {"[-a]", {"-", "a"}, {"b"}},
          {"[a-]", {"-", "a"}, {"b"}},
          {"[\\w-]", {"-", "a", "_"}, {"."}},
          {"[a^\\]\\\\[]", {"a", "^", "]", "\\", "["}, {"b"}},
          {"[\xc3\xa0-\xc3\xa9z]", {"\xc3\xa5", "z"}, {"\xc3\xaa"}},
          {"[\\d\\x41\\u0042\\b]", {"7", "A", "B", "\b"}, {"C", "b"}},
          {"[^\\S ]", {"\t", "\n"}, {" ", "a"}}},
         RegexUse::kWhole);
}

TEST(Regex, Escapes) {
  Expect({{"\\d\\D", {"1a", "1\xc3\xa9"}, {"11", "a1"}},
          {"\\w\\W", {"_-", "Z\n"}, {"ab", "--"}},
          {"\\s\\S",
           {" a", "\v\xc2\xa0"},
           {"\xc2\xa0"
            "a",
            "  "}},
          {"\\t\\n\\r\\f\\v\\0", {std::string("\t\n\r\f\v\0", 6)}, {}},
          {"\\x41\\u00e9", {"A\xc3\xa9"}, {}},
          {"\\u{1F600}\\ud83d\\uDE00", {"\xf0\x9f\x98\x80\xf0\x9f\x98\x80"}, {}},
          {"\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\^\\$\\/\\\\\\-\\ ", {".*+?()[]{}|^$/\\- "}, {}}},
         RegexUse::kWhole);
}

TEST(Regex, SearchesAnywhereUnlessAnchored) {
  Expect({{"b", {"b", "abc", "\nb\xc3\xa9"}, {"", "ac"}},
          {"^b", {"b", "bc"}, {"ab"}},
          {"b$", {"b", "ab"}, {"ba"}},
          {"^b$", {"b"}, {"ab", "ba", "b\n"}},
          {"^a|b$", {"ac", "cb"}, {"cac", "cbc"}},
          {"", {"", "a"}, {}},
          {"^.$", {"a"}, {"\n", "\r", "\xe2\x80\xa8"}},
          {"^\\S$", {"a"}, {"\xc2\xa0", "\xef\xbb\xbf", " "}},
          {"^\\s$", {"\xc2\xa0", "\t"}, {"a"}}},
         RegexUse::kSearch);
}

TEST(Regex, RefusalsNameTheByte) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"a\\1", "byte 1: backreferences"},
      {"(?<a>x)\\k<a>", "byte 7: backreferences"},
      {"(?P=a)", "byte 0: backreferences"},
      {"a(?=b)", "byte 1: lookaround"},
      {"a(?!b)", "byte 1: lookaround"},
      {"(?<=b)", "byte 0: lookaround"},
      {"(?<!b)", "byte 0: lookaround"},
      {"\\ba", "byte 0: \\b and \\B"},
      {"\\B", "byte 0: \\b and \\B"},
      {"(?i)a", "byte 0: flags"},
      {"(?>a)", "byte 0: flags"},
      {"(?", "byte 0: flags"},
      {"a*+", "byte 2: possessive"},
      {"a{2}+", "byte 4: possessive"},
      {"a**", "byte 2: a quantifier of"},
      {"a{2}{3}", "byte 4: a quantifier of"},
      {"\\p{L}", "byte 0: \\p and"},
      {"\\Aa", "byte 0: anchors"},
      {"a^", "byte 1: \"^\""},
      {"(^a)", "byte 1: \"^\""},
      {"a$b", "byte 1: \"$\""},
      {"(a$)", "byte 2: \"$\""},
      {"(a", "byte 0: a parenthesis"},
      {"(a|b))", "byte 5: a closing"},
      {"(?<>a)", "byte 0: a group without"},
      {"(?<a", "byte 0: a group without"},
      {"(?<a-b>c)", "byte 4: not of"},
      {"*a", "byte 0: nothing"},
      {"a|+", "byte 2: nothing"},
      {"^*", "byte 1: nothing"},
      {"{a}", "byte 0: nothing"},
      {"a{", "byte 2: need {n}"},
      {"a{,2}", "byte 2: need {n}"},
      {"a{1", "byte 1: need {n}"},
      {"a{3,2}", "byte 1: a count that ends"},
      {"a{1001}", "byte 2: a count of more than 1000"},
      {"a{1,99999999999}", "byte 4: a count of more than 1000"},
      {"[]", "byte 0: an empty class"},
      {"[^]", "byte 0: an empty class"},
      {"[a", "byte 0: a class without"},
      {"[a-", "byte 0: a class without"},
      {"[b-a]", "byte 1: a range that ends"},
      {"[\\d-a]", "byte 1: a range needs"},
      {"[a-\\d]", "byte 1: a range needs"},
      {"[[:alpha:]]", "byte 1: classes by name"},
      {"\\", "byte 0: a backslash"},
      {"\\q", "byte 0: there is no such escape"},
      {"\\\n", "byte 0: there is no such escape"},
      {"\\01", "byte 0: octal"},
      {"\\x4", "byte 3: need 2"},
      {"\\u12", "byte 4: need 4"},
      {"\\u{}", "byte 0: need one to six"},
      {"\\u{1234567}", "byte 0: need one to six"},
      {"\\u{110000}", "byte 0: there is no such character"},
      {"\\ud800", "byte 0: half"},
      {"\\ud800\\u0041", "byte 0: half"},
      {"\\udc00", "byte 0: half"},
      {"a\xff", "byte 1: not UTF-8"},
      {"\xed\xa0\x80", "byte 0: not UTF-8"},
  };
  for (const auto& [pattern, refusal] : cases) {
    EXPECT_THAT(Refusal(pattern), StartsWith("regular expression, " + std::string(refusal)))
        << pattern;
  }
}

TEST(Regex, IsBounded) {
  EXPECT_THAT(Refusal(std::string(kMaxRegexBytes + 1, 'a')), HasSubstr("at most 65536"));
  EXPECT_THAT(Refusal("((a{1000}){1000}){1000}"), HasSubstr("states"));
  EXPECT_THAT(Refusal("((((){1000}){1000}){1000}){1000}"), HasSubstr("states"));
  const auto nested = [](int depth) {
    const auto count = static_cast<size_t>(depth);
    return std::string(count, '(') + "a" + std::string(count, ')');
  };
  EXPECT_TRUE(ExpressionOfRegex(nested(kMaxRegexDepth), RegexUse::kWhole).ok());
  EXPECT_THAT(Refusal(nested(kMaxRegexDepth + 1)), HasSubstr("groups nest deeper than 100"));
}

TEST(Regex, LargePatternsTakeNoTime) {
  const std::clock_t begin = std::clock();
  for (const std::string_view piece : {"a", "[^a]", ".", "\\W", "(", "()", "(|", "a|", "[a-b]?"}) {
    std::string pattern;
    while (pattern.size() + piece.size() <= kMaxRegexBytes) pattern += piece;
    const auto grammar = GrammarOf(pattern, RegexUse::kSearch);
    if (grammar.ok()) Compile(*grammar).IgnoreError();
  }
  const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(taken, 10);  // seconds; it takes 0.3 without sanitizers
}

class Pcre {
 public:
  explicit Pcre(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(Bytes(pattern), pattern.size(), PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &error,
                          &offset, nullptr);
    EXPECT_NE(code_, nullptr) << pattern << " at " << offset;
    data_ = pcre2_match_data_create(1, nullptr);
  }
  ~Pcre() {
    pcre2_match_data_free(data_);
    pcre2_code_free(code_);
  }
  Pcre(const Pcre&) = delete;
  Pcre& operator=(const Pcre&) = delete;

  // Negative where PCRE2 gave up.
  int Matches(const std::string& text, bool whole) const {
    const uint32_t options = whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
    const int result = pcre2_match(code_, Bytes(text), text.size(), 0, options, data_, nullptr);
    return result >= 0 ? 1 : result == PCRE2_ERROR_NOMATCH ? 0 : -1;
  }

 private:
  static PCRE2_SPTR Bytes(const std::string& text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
  }
  pcre2_code* code_ = nullptr;
  pcre2_match_data* data_ = nullptr;
};

std::string RandomPattern(std::mt19937& random, int depth) {
  const auto one_of = [&](const auto& list) {
    return std::string(list[random() % std::size(list)]);
  };
  constexpr const char* kAtoms[] = {
      "a",    "b",    "\xc3\xa9", "\xf0\x9f\x98\x80", ".",         "\\d", "\\W",  "\\s",
      "[ab]", "[^a]", "\\n",      "[a-\xc3\xa9]",     "[^\\w\\n]", "ab",  "\\x61"};
  constexpr const char* kQuantifiers[] = {"*",     "+",  "?",  "{2}", "{1,}",
                                          "{0,2}", "*?", "+?", "??",  "{1,3}?"};
  std::string pattern;
  for (size_t n = random() % 4; n > 0; --n) {
    if (depth > 0 && random() % 3 == 0) {
      constexpr const char* kOpen[] = {"(", "(?:", "(?P<n>", "("};
      const bool named = pattern.find("(?P<") != std::string::npos;
      pattern += (named || depth != 2 ? "(" : one_of(kOpen)) + RandomPattern(random, depth - 1) +
                 (random() % 2 == 0 ? "|" + RandomPattern(random, depth - 1) : "") + ")";
    } else {
      pattern += one_of(kAtoms);
    }
    if (random() % 3 == 0) pattern += one_of(kQuantifiers);
  }
  return pattern;
}

TEST(Regex, MatchesWhatPcre2Does) {
  std::mt19937 random(11);
  constexpr const char* kPieces[] = {"a", "b", "1", " ", "\n", "-", "\xc3\xa9", "\xf0\x9f\x98\x80"};
  int matches = 0, others = 0;
  for (int round = 0; round < 2000; ++round) {
    const bool whole = round % 2 == 0;
    std::string pattern;
    for (size_t n = 1 + random() % 2; n > 0; --n) {
      if (!pattern.empty()) pattern += "|";
      if (random() % 3 == 0) pattern += "^";
      pattern += RandomPattern(random, 2);
      if (random() % 3 == 0) pattern += "$";
    }
    if (pattern.find("(?P<") != pattern.rfind("(?P<")) continue;  // PCRE2 wants other names
    const Pcre pcre(pattern);
    Language language(GrammarOf(pattern, whole ? RegexUse::kWhole : RegexUse::kSearch));
    for (int i = 0; i < 30; ++i) {
      std::string text;
      for (size_t n = random() % 6; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
      const int expected = pcre.Matches(text, whole);
      if (expected < 0) continue;
      ASSERT_EQ(language.Has(text), expected == 1) << pattern << " of " << text;
      ++(expected == 1 ? matches : others);
    }
  }
  EXPECT_GT(matches, 5000);
  EXPECT_GT(others, 5000);
}

TEST(Regex, WhatIsDrawnMatches) {
  std::mt19937 random(12);
  for (int round = 0; round < 300; ++round) {
    const std::string pattern = "(" + RandomPattern(random, 1) + ")-" + RandomPattern(random, 1);
    const Pcre pcre(pattern);
    Language language(GrammarOf(pattern, RegexUse::kWhole));
    for (int i = 0; i < 10; ++i) {
      const auto text = language.Draw(random, 60);
      if (!text.has_value()) continue;
      ASSERT_EQ(pcre.Matches(*text, /*whole=*/true), 1) << pattern << " of " << *text;
    }
  }
}

}  // namespace
}  // namespace tandem::coordinator::grammar
