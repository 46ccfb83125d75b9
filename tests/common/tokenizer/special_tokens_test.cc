#include "common/tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/tokenizer/make_tokenizer.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

// Tokens as "<id>", text as it is.
std::vector<std::string> Split(const Vocabulary& vocabulary, std::string_view text, bool parse) {
  std::vector<std::string> parts;
  for (const Fragment& fragment : SpecialTokenSplitter(vocabulary).Split(text, parse)) {
    parts.push_back(fragment.token == kNoToken ? std::string(fragment.text)
                                               : "#" + std::to_string(fragment.token));
  }
  return parts;
}

using Parts = std::vector<std::string>;

VocabularyData Tokens(const std::vector<std::pair<std::string, TokenType>>& tokens) {
  VocabularyData data;
  data.model = "gpt2";
  for (const auto& [text, type] : tokens) AddToken(&data, text, type);
  return data;
}

TEST(SpecialTokens, UserDefinedOnesAlwaysOthersWhenAsked) {
  const Vocabulary vocabulary = Vocabulary::Create(Tokens({{"<c>", TokenType::kControl},
                                                           {"<u>", TokenType::kUserDefined},
                                                           {"<n>", TokenType::kNormal},
                                                           {"<k>", TokenType::kUnknown}}))
                                    .value();
  EXPECT_EQ(Split(vocabulary, "a<c>b<u>d<n><k>", false), (Parts{"a<c>b", "#1", "d<n><k>"}));
  EXPECT_EQ(Split(vocabulary, "a<c>b<u>d<n><k>", true),
            (Parts{"a", "#0", "b", "#1", "d<n>", "#3"}));
  EXPECT_EQ(Split(vocabulary, "", true), Parts{});
  EXPECT_EQ(Split(vocabulary, "<c><c>", true), (Parts{"#0", "#0"}));
}

TEST(SpecialTokens, LeftmostThenLongest) {
  const Vocabulary vocabulary = Vocabulary::Create(Tokens({{"aa", TokenType::kUserDefined},
                                                           {"aaa", TokenType::kUserDefined},
                                                           {"ab", TokenType::kUserDefined},
                                                           {"bcd", TokenType::kUserDefined},
                                                           {"aa", TokenType::kUserDefined},
                                                           {"", TokenType::kUserDefined}}))
                                    .value();
  EXPECT_EQ(Split(vocabulary, "aaaaaa", false), (Parts{"#1", "#1"}));
  EXPECT_EQ(Split(vocabulary, "aaaaax", false), (Parts{"#1", "#0", "x"}));
  EXPECT_EQ(Split(vocabulary, "abcd", false), (Parts{"#2", "cd"}));
  EXPECT_EQ(Split(vocabulary, "xbcd", false), (Parts{"x", "#3"}));
}

TEST(SpecialTokens, StripsSpaceAfterThemWhereTheModelAsks) {
  VocabularyData data = Tokens({{"<|end|>", TokenType::kControl}, {"<s>", TokenType::kControl}});
  EXPECT_EQ(Split(Vocabulary::Create(data).value(), "<|end|> \nx<s> y", true),
            (Parts{"#0", " \nx", "#1", " y"}));
  data.strip_after_special = true;
  EXPECT_EQ(Split(Vocabulary::Create(data).value(), "<|end|> \nx<s> y<|end|> ", true),
            (Parts{"#0", "x", "#1", " y", "#0"}));
}

// One token per length: a search per token, or per length at each place, would be slow here.
TEST(SpecialTokens, ManyNestedTokensInALongText) {
  std::vector<std::pair<std::string, TokenType>> tokens;
  for (size_t length = 1; length <= 1000; ++length) {
    tokens.emplace_back(std::string(length, 'a'), TokenType::kUserDefined);
  }
  const Vocabulary vocabulary = Vocabulary::Create(Tokens(tokens)).value();
  const SpecialTokenSplitter splitter(vocabulary);
  const std::vector<Fragment> fragments = splitter.Split(std::string(1000500, 'a'), false);
  ASSERT_EQ(fragments.size(), 1001u);
  EXPECT_EQ(fragments[0].token, 999);
  EXPECT_EQ(fragments[1000].token, 499);
}

TEST(SpecialTokens, AreEncodedWhenParsed) {
  VocabularyData data = ByteLevelVocabulary({});
  const TokenId bos = static_cast<TokenId>(*data.bos), mine = bos + 2;
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(
      tokenizer->Encode("a<|bos|><|mine|>b", {.add_special = false, .parse_special = true}).value(),
      (std::vector<TokenId>{'a', bos, mine, 'b'}));
  const std::vector<TokenId> plain = tokenizer->Encode("a<|bos|><|mine|>b", {}).value();
  EXPECT_EQ(plain.size(), 1 + 7 + 1 + 1u);
  EXPECT_EQ(plain[8], mine);
}

}  // namespace
}  // namespace tandem::tokenizer
