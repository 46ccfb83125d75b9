#include "coordinator/speculation/ngram_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

Tokens DraftOf(const Tokens& tokens, uint32_t most) { return NgramDrafter().Draft(tokens, most); }

TEST(NgramDrafterTest, WhatFollowedTheLastTokensBefore) {
  EXPECT_EQ(DraftOf({1, 2, 3, 4, 5, 6, 1, 2, 3}, 3), (Tokens{4, 5, 6}));
  EXPECT_EQ(DraftOf({1, 2, 3, 4, 5, 6, 1, 2, 3}, 0), Tokens());
  EXPECT_EQ(DraftOf({1, 2, 3, 4, 9, 1, 2, 3, 5, 9, 1, 2, 3}, 2), (Tokens{5, 9}))
      << "the latest time";
}

TEST(NgramDrafterTest, NoneWithoutAnEarlierTime) {
  EXPECT_EQ(DraftOf({}, 4), Tokens());
  EXPECT_EQ(DraftOf({1}, 4), Tokens());
  EXPECT_EQ(DraftOf({1, 2, 3}, 4), Tokens());
  EXPECT_EQ(DraftOf({7, 2, 3, 4, 1, 2, 3}, 4), Tokens()) << "two tokens are too few";
}

TEST(NgramDrafterTest, APeriodGoesOn) {
  EXPECT_EQ(DraftOf({1, 2, 1, 2, 1}, 5), (Tokens{2, 1, 2, 1, 2}));
  EXPECT_EQ(DraftOf({5, 5, 5, 5}, 3), (Tokens{5, 5, 5}));
}

// The same drafts as a search through all tokens, whichever way they arrive: the table is large
// enough that its collisions cost little, and no collision makes a wrong match.
TEST(NgramDrafterTest, AsASearchFinds) {
  std::mt19937 random(20261123);
  Tokens tokens;
  NgramDrafter drafter;
  uint32_t num_found = 0, num_missed = 0;
  while (tokens.size() < 5000) {
    for (uint32_t i = random() % 5; i > 0; --i)
      tokens.push_back(static_cast<TokenId>(random() % 12));
    if (tokens.size() < NgramDrafter::kMatch) continue;
    const Tokens draft = drafter.Draft(tokens, 1);
    const auto last = std::span(tokens).last(NgramDrafter::kMatch);
    const auto earlier = std::span(tokens).first(tokens.size() - 1);
    const auto found = std::ranges::find_end(earlier, last);
    if (found.empty()) {
      EXPECT_EQ(draft, Tokens());
    } else if (draft.empty()) {
      ++num_missed;
    } else {
      ++num_found;
      EXPECT_EQ(draft[0], *found.end());
    }
  }
  EXPECT_GT(num_found, 100 * num_missed);
}

TEST(NgramDrafterTest, ALongPromptIsReadOverSeveralCalls) {
  Tokens tokens(200'000);
  std::iota(tokens.begin(), tokens.end(), 0);
  tokens.insert(tokens.end(), {199'990, 199'991, 199'992});
  NgramDrafter drafter;
  int num_calls = 1;
  while (drafter.Draft(tokens, 2).empty() && num_calls < 1000) ++num_calls;
  EXPECT_GT(num_calls, 10);
  EXPECT_EQ(drafter.Draft(tokens, 2), (Tokens{199'993, 199'994})) << "of its latest part";
}

}  // namespace
}  // namespace tandem::coordinator
