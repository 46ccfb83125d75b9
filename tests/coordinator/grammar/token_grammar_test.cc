#include "coordinator/grammar/token_grammar.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/byte_tokenizer.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

std::shared_ptr<TokenGrammar> Made(std::vector<Expression> rules,
                                   const std::vector<std::string>& tokens) {
  auto grammar = TokenGrammar::Create({std::move(rules)}, TrieOf(tokens));
  EXPECT_TRUE(grammar.ok()) << grammar.status();
  return *std::move(grammar);
}
std::vector<TokenId> Ids(const Continuation& next) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; static_cast<size_t>(id) < next.allowed->size() * 32; ++id) {
    if (step::Contains(*next.allowed, id)) ids.push_back(id);
  }
  return ids;
}

TEST(TokenGrammar, FollowsTheTokensOfAGeneration) {
  const auto grammar =
      Made({Sequence({Text("ab"), Repeat(Text("c"), 0, 2)})}, {"a", "ab", "b", "c"});
  Matcher matcher(grammar);
  std::vector<TokenId> tokens;
  EXPECT_EQ(Ids(*matcher.Follow(tokens)), (std::vector<TokenId>{0, 1}));
  tokens = {0};
  EXPECT_EQ(Ids(*matcher.Follow(tokens)), std::vector<TokenId>{2});
  EXPECT_FALSE(matcher.Follow(tokens)->can_end);
  tokens = {0, 2};
  EXPECT_EQ(Ids(*matcher.Follow(tokens)), std::vector<TokenId>{3});
  EXPECT_TRUE(matcher.Follow(tokens)->can_end);
  tokens = {0, 2, 3, 3};
  EXPECT_FALSE(matcher.Follow(tokens)->has_tokens);
  EXPECT_TRUE(matcher.Follow(tokens)->can_end);
}

TEST(TokenGrammar, RefusesTokensThatAreNotAllowed) {
  const auto grammar = Made({Text("ab")}, {"a", "ab", "b"});
  for (const TokenId id : {2, 3, 77}) {  // 3 ends a generation, 77 does not exist
    Matcher matcher(grammar);
    const std::vector<TokenId> tokens = {0, id, 0};
    const absl::Status status = matcher.Follow(tokens).status();
    EXPECT_EQ(status.ok(), false) << id;
    if (id == 2) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("token 2 of the answer, id 0"));
    } else {
      EXPECT_THAT(std::string(status.message()), HasSubstr("token 1 of the answer"));
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  }
}

TEST(TokenGrammar, SaysWhereNoTokenCanFollow) {
  const auto grammar = Made({Choice({Text("ab"), Text("ax")})}, {"a", "ab"});
  Matcher matcher(grammar);
  const std::vector<TokenId> tokens = {0};
  const absl::Status status = matcher.Follow(tokens).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no token can follow 1 of an answer of this form: it would nest"));
}

TEST(TokenGrammar, RefusesWhatNoTokenBegins) {
  const auto refusal = [](Expression rule) {
    const auto grammar = TokenGrammar::Create({{std::move(rule)}}, TrieOf({"a"}));
    EXPECT_EQ(grammar.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(grammar.status().message());
  };
  EXPECT_THAT(refusal(Text("b")), HasSubstr("no token can follow 0 of an answer"));
  EXPECT_THAT(refusal(Text("")), HasSubstr("the only text of this form is the empty one"));
  EXPECT_THAT(refusal(Choice({})), HasSubstr("no string of the grammar comes to an end"));
}

// Where one of the last 17 bytes was an a: more states than there is room for, so that an automaton
// begins anew now and then while two generations are in between.
TEST(TokenGrammar, MayRunOutOfRoomWithoutAnyoneNoticing) {
  const auto grammar = Made(
      {Sequence({Repeat(Class({{'a', 'b'}}), 0), Text("a"), Repeat(Class({{'a', 'b'}}), 17, 17)})},
      {"a", "b", "ba"});
  std::mt19937 random(5);
  std::vector<TokenId> one, two;
  std::string text_of_one;
  Matcher first(grammar), second(grammar);
  for (int i = 0; i < 40000; ++i) {
    const auto token = static_cast<TokenId>(random() % 3);
    one.push_back(token);
    text_of_one += token == 0 ? "a" : token == 1 ? "b" : "ba";
    const auto next = first.Follow(one);
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_EQ(Ids(*next), (std::vector<TokenId>{0, 1, 2}));
    const bool ends = text_of_one.size() >= 18 && text_of_one[text_of_one.size() - 18] == 'a';
    ASSERT_EQ(next->can_end, ends) << i;
    if (i % 1000 != 0) continue;
    two.push_back(token);
    ASSERT_TRUE(second.Follow(two).ok());
  }
}

// A long text is read once, however often an automaton begins anew for others.
TEST(TokenGrammar, LongAnswersOfOneFormBesideEachOther) {
  const auto grammar = Made({Repeat(Class({{'a', 'b'}}), 0, 40000)}, {"a", "b"});
  std::vector<TokenId> one, two(20000, 1);
  Matcher first(grammar), second(grammar);
  ASSERT_TRUE(second.Follow(two).ok());
  for (int i = 0; i < 12000; ++i) {
    one.push_back(i % 2);
    const auto next = first.Follow(one);
    ASSERT_TRUE(next.ok()) << i << ": " << next.status();
    if (i % 100 != 0) continue;
    two.push_back(0);
    ASSERT_TRUE(second.Follow(two).ok()) << i;
  }
}

// 300 ways to begin, each of which has 3000 ways to read nothing first.
TEST(TokenGrammar, RefusesWhatTakesTooLongToBegin) {
  constexpr RuleIndex kWays = 300;
  std::vector<Expression> rules;
  for (RuleIndex way = 0; way < kWays; ++way) {
    rules.push_back(Choice({Sequence({Rule(kWays + 1), Text("b")}), Rule(way + 1)}));
  }
  rules.push_back(Text("b"));
  std::vector<Expression> nothing(3000, Text(""));
  nothing.push_back(Text("b"));
  rules.push_back(Choice(std::move(nothing)));
  const auto grammar = TokenGrammar::Create({std::move(rules)}, TrieOf({"b"}));
  EXPECT_EQ(grammar.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(grammar.status().message()),
              HasSubstr("no token can begin an answer of this form: it takes too long"));
}

TEST(TokenGrammar, WhatTakesTooLongEndsOneAnswer) {
  std::vector<std::string> tokens = {"a"};
  for (size_t n = 1; n < 40; ++n) tokens.push_back(std::string(n, 'b'));
  const auto grammar =
      Made({Sequence({Text("a"), Repeat(Repeat(Class({{'b', 'b'}}), 0, 300), 0, 250)})}, tokens);
  const absl::Status status = Matcher(grammar).Follow(std::vector<TokenId>{0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("form: it takes too long to find which"));
  EXPECT_TRUE(Matcher(grammar).Follow({}).ok());
}

}  // namespace
}  // namespace tandem::coordinator::grammar
