#include "coordinator/grammar/token_trie.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/coordinator/grammar/byte_tokenizer.h"

namespace tandem::coordinator::grammar {
namespace {

Automaton Compiled(std::vector<Expression> rules) {
  auto network = Compile({std::move(rules)});
  EXPECT_TRUE(network.ok()) << network.status();
  return Automaton(*std::move(network));
}
constexpr uint32_t kPadding = 2;
std::vector<TokenId> Allowed(const TokenTrie& trie, Automaton& automaton, Automaton::State state) {
  const TokenMask mask = trie.AllowedIn(automaton, state);
  std::vector<TokenId> ids;
  for (uint32_t id = 0; id < trie.vocab_size(); ++id) {
    if (step::Contains(mask, static_cast<TokenId>(id))) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

TEST(TokenTrie, AllowsWhatMayFollow) {
  const auto trie = TrieOf({"a", "ab", "abc", "b", "", "ab", "\xc3", "\xc3\xa8", "ba"}, kPadding);
  Automaton a = Compiled({Choice({Text("abb"), Class({{0xe8, 0xe8}})})});
  EXPECT_EQ(Allowed(*trie, a, a.start()), (std::vector<TokenId>{0, 1, 5, 6, 7}));
  const Automaton::State after = a.Next(a.start(), 'a');
  EXPECT_EQ(Allowed(*trie, a, after), std::vector<TokenId>{3});
  EXPECT_EQ(Allowed(*trie, a, Automaton::kDead), std::vector<TokenId>{});
}

TEST(TokenTrie, EndsAreNoText) {
  const auto trie = TrieOf({"<", "<e"}, kPadding);
  Automaton a = Compiled({Text("<end>")});
  EXPECT_EQ(Allowed(*trie, a, a.start()), (std::vector<TokenId>{0, 1}));
}

TEST(TokenTrie, AllowsTheLongestToken) {
  const std::string longest(255, 'a');
  const auto trie = TrieOf({longest, longest + "a", "a"}, kPadding);
  Automaton a = Compiled({Repeat(Text("a"), 0)});
  EXPECT_EQ(Allowed(*trie, a, a.start()), (std::vector<TokenId>{0, 2}));
}

TEST(TokenTrie, IsWhatTryingEachTokenGives) {
  std::mt19937 random(3);
  std::vector<std::string> tokens;
  for (int i = 0; i < 500; ++i) {
    std::string token;
    for (size_t n = 1 + random() % 5; n > 0; --n) token += "ab[],"[random() % 5];
    tokens.push_back(std::move(token));
  }
  const auto trie = TrieOf(tokens, kPadding);
  // Lists of lists and of up to three letters.
  Automaton a = Compiled(
      {Choice({Sequence({Text("["),
                         Optional(Sequence({Rule(0), Repeat(Sequence({Text(","), Rule(0)}), 0)})),
                         Text("]")}),
               Repeat(Class({{'a', 'b'}}), 1, 3)})});
  for (int walk = 0; walk < 50; ++walk) {
    Automaton::State state = a.start();
    for (int step = 0; step < 20; ++step) {
      std::vector<TokenId> expected;
      for (size_t id = 0; id < tokens.size(); ++id) {
        Automaton::State next = state;
        for (const char c : tokens[id]) next = a.Next(next, static_cast<uint8_t>(c));
        if (next != Automaton::kDead) expected.push_back(static_cast<TokenId>(id));
      }
      ASSERT_EQ(Allowed(*trie, a, state), expected);
      if (expected.empty()) break;
      const TokenId id = expected[random() % expected.size()];
      for (const char c : tokens[static_cast<size_t>(id)]) {
        state = a.Next(state, static_cast<uint8_t>(c));
      }
    }
  }
}

}  // namespace
}  // namespace tandem::coordinator::grammar
