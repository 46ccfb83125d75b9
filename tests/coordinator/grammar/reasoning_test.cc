#include "coordinator/grammar/reasoning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/grammar/text_forms.h"
#include "coordinator/grammar/token_grammar.h"
#include "tests/coordinator/grammar/byte_tokenizer.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

Language AfterThoughts(const Reasoning& reasoning, const std::vector<std::string>& answers) {
  return Language(WithReasoning(reasoning, GrammarOfChoices(answers).value()));
}

using Answers = std::vector<std::string>;

// The same by its definition, for a text without control tokens.
bool IsAnswerAfterThoughts(std::string text, const Reasoning& reasoning, const Answers& answers) {
  const auto is_answer = [&] { return std::ranges::find(answers, text) != answers.end(); };
  if (!reasoning.start.empty()) {
    if (is_answer()) return true;
    text.erase(0, std::min(text.find_first_not_of('\n'), size_t{2}));
    if (!text.starts_with(reasoning.start)) return false;
    text.erase(0, reasoning.start.size());
  }
  const size_t end = text.find(reasoning.end);
  if (end == std::string::npos) return false;
  text.erase(0, end + reasoning.end.size());
  if (!text.starts_with(reasoning.answer_start)) return false;
  text.erase(0, reasoning.answer_start.size());
  for (int i = 0; i < 2; ++i) {
    if (is_answer()) return true;
    if (text.starts_with('\n')) text.erase(0, 1);
  }
  return is_answer();
}

// All texts of up to eight characters of an alphabet that the ends are made of.
TEST(Reasoning, EndsAtTheFirstEnd) {
  const Answers answers = {"b", "aab", "\na"};
  for (const Reasoning& reasoning :
       {Reasoning{.end = "aab"}, Reasoning{.end = "abab"}, Reasoning{.start = "b", .end = "aa"},
        Reasoning{.end = "aba", .answer_start = "ab"}, Reasoning{.start = "ab", .end = "\n"}}) {
    Language language = AfterThoughts(reasoning, answers);
    int found = 0;
    for (uint32_t length = 0, count = 1; length <= 8; ++length, count *= 3) {
      for (uint32_t number = 0; number < count; ++number) {
        std::string text;
        for (uint32_t i = 0, rest = number; i < length; ++i, rest /= 3) text += "ab\n"[rest % 3];
        const bool expected = IsAnswerAfterThoughts(text, reasoning, answers);
        found += expected ? 1 : 0;
        ASSERT_EQ(language.Has(text), expected) << reasoning.end << ": " << text;
      }
    }
    EXPECT_GT(found, 20) << reasoning.end;
  }
}

TEST(Reasoning, MayBeAnyCharacters) {
  Language language = AfterThoughts({.end = "</è>"}, {"yes"});
  EXPECT_TRUE(language.Has("日本 <</</è</è>\n\nyes"));
  EXPECT_FALSE(language.Has("日本 </è>\n\n\nyes"));
  EXPECT_FALSE(language.Has("\xc3</è>yes"));  // half a character
  EXPECT_FALSE(language.Has("</è>日</è>yes"));
}

TEST(Reasoning, NamesControlTokens) {
  const Reasoning channels = {.end = "<|c|>final", .answer_start = "<|m|>"};
  Language language = AfterThoughts(channels, {"yes", "<|c|>"});
  EXPECT_TRUE(language.Has("\xff<|c|>thoughts\xff<|m|>a\xff<|e|>\xff<|c|>final\xff<|m|>yes"));
  EXPECT_TRUE(language.Has("<|c|>final<|m|>yes"));
  EXPECT_TRUE(language.Has("\xff<|c|>final\xff<|m|><|c|>"));
  EXPECT_FALSE(language.Has("\xff<|c|>final\xff<|m|>\xff<|c|>"));
  EXPECT_FALSE(language.Has("\xff<|c|>final\xff<|c|>final\xff<|m|>yes"));
  Language begun = AfterThoughts({.start = "<t>", .end = "</t>"}, {"yes"});
  EXPECT_TRUE(begun.Has("\xff<t>no\xff</t>yes"));
  EXPECT_FALSE(begun.Has("\xff</t>yes"));
}

TEST(Reasoning, LeavesAllTokensToThoughts) {
  enum : TokenId { kYes, kEnd, kEndAndMore, kEndAndYes, kControl, kMore, kByte };
  const auto trie = std::make_shared<const TokenTrie>(
      std::make_shared<ByteTokenizer>(
          Answers{"yes", "</t>", "</t>no", "</t>yes", "</t>", "mo", "\xff"},
          std::vector<TokenId>{kControl}),
      9);
  const auto grammar = TokenGrammar::Create(
      WithReasoning({.end = "</t>"}, GrammarOfChoices({"yes"}).value()).value(), trie);
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  const auto allowed = [&](std::vector<TokenId> tokens) {
    const Continuation next = Matcher(*grammar).Follow(tokens).value();
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < 9; ++id) {
      if (step::Contains(*next.allowed, id)) ids.push_back(id);
    }
    if (next.can_end) ids.push_back(-1);
    return ids;
  };
  using testing::ElementsAre;
  EXPECT_THAT(allowed({}), ElementsAre(kYes, kEnd, kEndAndYes, kControl, kMore));
  EXPECT_THAT(allowed({kYes, kMore}), ElementsAre(kYes, kEnd, kEndAndYes, kControl, kMore));
  EXPECT_THAT(allowed({kMore, kEnd}), ElementsAre(kYes));
  EXPECT_THAT(allowed({kMore, kControl}), ElementsAre(kYes));
  EXPECT_THAT(allowed({kControl, kYes}), ElementsAre(-1));
  EXPECT_THAT(allowed({kEndAndYes}), ElementsAre(-1));
}

TEST(Reasoning, RefusesWhatNothingEnds) {
  const auto refusal = [](const Reasoning& reasoning) {
    return std::string(
        WithReasoning(reasoning, GrammarOfChoices({"a"}).value()).status().message());
  };
  EXPECT_EQ(refusal({.start = "<think>"}), "reasoning.end is empty");
  EXPECT_EQ(refusal({.start = "\xff", .end = "a"}), "reasoning.start is not UTF-8");
  EXPECT_EQ(refusal({.end = std::string(257, 'a')}), "reasoning.end has 257 bytes, at most 256");
  EXPECT_EQ(refusal({.end = "a", .answer_start = "\xc3"}), "reasoning.answer_start is not UTF-8");
  EXPECT_EQ(refusal({.end = std::string(256, 'a')}), "");
}

}  // namespace
}  // namespace tandem::coordinator::grammar
