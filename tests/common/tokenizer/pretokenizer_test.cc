// Words of each pattern list, and that long hostile texts take one pass.
#include "common/tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

Pretokenizer Make(std::string_view name) {
  return Pretokenizer::Create(*FindPretokenizer(name)).value();
}

using Words = std::vector<std::string_view>;

struct Case {
  const char* pre;
  std::string text;
  Words words;
};

class PretokenizerWords : public testing::TestWithParam<Case> {};

TEST_P(PretokenizerWords, Split) {
  const Case& c = GetParam();
  EXPECT_EQ(Make(c.pre).Split(c.text).value(), c.words) << c.pre << ": " << c.text;
}

const Case kCases[] = {
    {"gpt-2", "", {}},
    {"gpt-2", "I'll see 1234 cats!!", {"I", "'ll", " see", " 1234", " cats", "!!"}},
    {"gpt-2", "I'LL", {"I", "'", "LL"}},
    {"gpt-2", "a   b  ", {"a", "  ", " b", "  "}},
    {"gpt-2", "a\n\n b", {"a", "\n\n", " b"}},
    {"gpt-2", "x\u00a0\u3000y", {"x", "\u00a0", "\u3000", "y"}},
    // U+180E is no white space since Unicode 6.3.
    {"gpt-2", " \u180ey", {" \u180e", "y"}},
    {"llama-bpe", "I'LL see 1234567", {"I", "'LL", " see", " ", "123", "456", "7"}},
    // U+017F folds to s in caseless matching; the suffixes are ASCII only.
    {"llama-bpe", "a'\u017fb", {"a", "'\u017fb"}},
    {"llama-bpe", "(word) \n\n  x", {"(word", ")", " \n\n", " ", " x"}},
    {"llama-bpe", "end.\r\n", {"end", ".\r\n"}},
    {"qwen2", "v12.5", {"v", "1", "2", ".", "5"}},
    {"qwen2", "\tTab", {"\tTab"}},
    {"deepseek-llm",
     "Hi there\n42 \u4f60\u597d!",
     {"Hi", " there", "\n", "42", " ", "\u4f60\u597d", "!"}},
    {"deepseek-llm", "a  b   ", {"a", " ", " b", "   "}},
    {"deepseek-llm", "x\u01bby", {"x", "\u01bb", "y"}},
    {"starcoder", "a 12", {"a", " ", "1", "2"}},
    {"falcon", "a+b 12345", {"a", "+", "b", " ", "123", "45"}},
    {"gpt-4o", "camelCASEWord's", {"camel", "CASEWord's"}},
    {"tekken", "don't 12", {"don", "'t", " ", "1", "2"}},
    {"deepseek-v3", "x.y 1234 \u4f60\u597d", {"x", ".y", " ", "123", "4", " ", "\u4f60\u597d"}},
};

INSTANTIATE_TEST_SUITE_P(Table, PretokenizerWords, testing::ValuesIn(kCases));

TEST(PretokenizerTable, AliasesAndUnknownNames) {
  EXPECT_EQ(FindPretokenizer("llama3"), FindPretokenizer("llama-bpe"));
  EXPECT_EQ(FindPretokenizer("deepseek-r1-qwen"), FindPretokenizer("qwen2"));
  EXPECT_EQ(FindPretokenizer("llama4"), FindPretokenizer("gpt-4o"));
  EXPECT_EQ(FindPretokenizer("mpt"), FindPretokenizer("gpt-2"));
  EXPECT_EQ(FindPretokenizer("unknown"), nullptr);
  EXPECT_EQ(FindPretokenizer(""), nullptr);
  EXPECT_NE(SupportedPretokenizers().find("qwen2"), std::string::npos);
}

class EveryPretokenizer : public testing::TestWithParam<const char*> {};

TEST_P(EveryPretokenizer, WordsTogetherAreTheText) {
  const Pretokenizer pretokenizer = Make(GetParam());
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomText(random, 80);
    std::string joined;
    const Words words = pretokenizer.Split(text).value();
    for (std::string_view word : words) {
      EXPECT_FALSE(word.empty());
      joined += word;
    }
    EXPECT_EQ(joined, text);
  }
}

// Quadratic matching would need some 10^10 steps here.
TEST_P(EveryPretokenizer, LongRunsAreLinear) {
  const Pretokenizer pretokenizer = Make(GetParam());
  const size_t long_bytes = 1 << 17;
  for (const char* unit :
       {"a", "A", " ", "\n", "1", "!", "\u4e00", "\u3000", "\u0301", "\t\n", " a", "Aa"}) {
    for (const char* end : {"", "x", "\u4e00", "\n", "\u0e01"}) {
      std::string text;
      while (text.size() < long_bytes) text += unit;
      text += end;
      size_t bytes = 0;
      const Words words = pretokenizer.Split(text).value();
      for (std::string_view word : words) bytes += word.size();
      EXPECT_EQ(bytes, text.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPretokenizer,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "qwen35", "bailingmoe",
                                         "seed-coder", "gpt-4o", "tekken", "starcoder", "falcon",
                                         "deepseek-llm", "deepseek-coder", "deepseek-v3", "bloom",
                                         "viking", "default"));

}  // namespace
}  // namespace tandem::tokenizer
