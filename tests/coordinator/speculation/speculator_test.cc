#include "coordinator/speculation/speculator.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "coordinator/speculation/ngram_drafter.h"

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

// A text that repeats after `period` tokens.
Tokens Periodic(size_t length, size_t period) {
  Tokens tokens;
  for (size_t i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(i % period));
  return tokens;
}

TEST(SpeculatorTest, GuessesOnceItsGuessesWereRight) {
  Speculator speculator(std::make_unique<NgramDrafter>(), 8);
  Tokens tokens = Periodic(20, 7);
  EXPECT_TRUE(speculator.Guess(tokens).empty()) << "nothing is judged yet";
  size_t num_empty = 0;
  while (tokens.size() < 60) {
    tokens.push_back(static_cast<TokenId>(tokens.size() % 7));
    const Tokens guess = speculator.Guess(tokens);
    if (guess.empty()) ++num_empty;
    for (size_t i = 0; i < guess.size(); ++i) {
      EXPECT_EQ(guess[i], static_cast<TokenId>((tokens.size() + i) % 7));
    }
  }
  EXPECT_EQ(num_empty, 2u);
  EXPECT_EQ(speculator.Guess(tokens).size(), 8u);
}

// Several tokens at once are judged as one after another.
TEST(SpeculatorTest, AcceptedGuessesAreJudged) {
  Speculator speculator(std::make_unique<NgramDrafter>(), 4);
  speculator.Guess(Periodic(20, 7));
  EXPECT_EQ(speculator.Guess(Periodic(23, 7)).size(), 2u);
}

// Each token is what a workers' guess said, or not.
TEST(SpeculatorTest, GuessesOfWorkersAreJudgedWhenTheyAreKnown) {
  Speculator speculator(std::make_unique<ModelDrafter>(), 4, /*num_tokens=*/3);
  Tokens tokens = {1, 2, 3};
  const auto draw = [&](TokenId token, Tokens guess) {
    speculator.Learn(std::move(guess));
    tokens.push_back(token);
    return speculator.Guess(tokens).size();
  };
  EXPECT_EQ(draw(4, {4}), 0u) << "one right guess is too few";
  EXPECT_EQ(draw(5, {5}), 0u);
  EXPECT_EQ(draw(6, {6}), 2u);
  speculator.Learn({7, 8});
  tokens.insert(tokens.end(), {7, 8, 9});
  EXPECT_EQ(speculator.Guess(tokens), (Tokens{0, 0, 0, 0})) << "workers say which";
  EXPECT_EQ(draw(10, {}), 4u) << "nothing was guessed";
  EXPECT_EQ(draw(11, {12, 13}), 2u);
  EXPECT_EQ(draw(12, {13}), 0u);
}

// While nothing is guessed, tokens come that judge nothing.
TEST(SpeculatorTest, SkippedTokensJudgeNoGuess) {
  Speculator speculator(std::make_unique<ModelDrafter>(), 4, /*num_tokens=*/3);
  Tokens tokens = {1, 2, 3};
  for (const TokenId right : {10, 20, 30}) {
    speculator.Learn({7});  // which would be wrong
    tokens.insert(tokens.end(), {1, 2, 3});
    speculator.Skip(tokens);
    speculator.Learn({right});
    tokens.push_back(right);
    EXPECT_EQ(speculator.Guess(tokens).size(), right == 30 ? 2u : 0u) << right;
  }
}

TEST(SpeculatorTest, StopsWhenGuessesAreWrong) {
  Speculator speculator(std::make_unique<NgramDrafter>(), 8);
  Tokens tokens = Periodic(20, 7);
  speculator.Guess(tokens);
  tokens = Periodic(40, 7);
  ASSERT_FALSE(speculator.Guess(tokens).empty());
  // From here on each trigram of before is followed by another token than before.
  int num_guesses = 0;
  for (int i = 0; i < 10; ++i) {
    tokens.insert(tokens.end(), {100 + i, 0, 1, 2});
    if (!speculator.Guess(tokens).empty()) ++num_guesses;
    tokens.push_back(200 + i);
    if (!speculator.Guess(tokens).empty()) ++num_guesses;
  }
  EXPECT_LT(num_guesses, 5);
  EXPECT_TRUE(speculator.Guess(tokens).empty());
}

}  // namespace
}  // namespace tandem::coordinator
