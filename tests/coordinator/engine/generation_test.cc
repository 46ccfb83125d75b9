#include "coordinator/engine/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/speculation/ngram_drafter.h"

namespace tandem::coordinator {
namespace {

// The drafts after each of the last tokens of 1 2 3 4 5 1 2 3 4 5 ...
std::vector<std::vector<TokenId>> Drafts(std::vector<TokenId> end_ids) {
  Request request;
  request.prompt = {1, 2, 3, 4, 5};
  request.sampling.end_ids = std::move(end_ids);
  Generation generation(1, std::move(request));
  generation.speculator.emplace(std::make_unique<NgramDrafter>(), 7);
  std::vector<std::vector<TokenId>> drafts;
  for (int i = 0; i < 40; ++i) {
    generation.tokens.push_back(1 + i % 5);
    generation.Speculate(/*steps_may_draft=*/true);
    if (i >= 35) drafts.push_back(generation.drafts);
  }
  return drafts;
}

TEST(GenerationTest, GuessesWhatFollowed) {
  for (const std::vector<TokenId>& drafts : Drafts({})) EXPECT_EQ(drafts.size(), 7u);
}

// The row before it draws it.
TEST(GenerationTest, GuessesNeitherAnIdThatEndsItNorWhatFollows) {
  const std::vector<std::vector<TokenId>> wanted = {{2, 3, 4}, {3, 4}, {4}, {}, {1, 2, 3, 4}};
  EXPECT_EQ(Drafts({5, 9}), wanted);
}

TEST(GenerationTest, GuessesNothingWithoutASpeculator) {
  Request request;
  request.prompt = {1, 2, 3, 1, 2, 3, 1, 2, 3};
  Generation generation(1, std::move(request));
  generation.Speculate(/*steps_may_draft=*/true);
  EXPECT_TRUE(generation.drafts.empty());
}

// It goes on where it was: guesses were right before and after.
TEST(GenerationTest, GuessesNothingWhileStepsMayHaveNone) {
  Request request;
  request.prompt = {1, 2, 3, 4, 5};
  Generation generation(1, std::move(request));
  generation.speculator.emplace(std::make_unique<NgramDrafter>(), 7);
  for (int i = 0; i < 60; ++i) {
    generation.tokens.push_back(1 + i % 5);
    generation.Speculate(/*steps_may_draft=*/i < 30 || i >= 58);
    if (i < 29) continue;
    EXPECT_EQ(generation.drafts.size(), i < 30 || i >= 58 ? 7u : 0u) << i;
  }
}

}  // namespace
}  // namespace tandem::coordinator
