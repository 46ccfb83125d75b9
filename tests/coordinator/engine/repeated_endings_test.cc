#include "coordinator/engine/repeated_endings.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;
using Endings = std::vector<RepeatedEnding>;

TEST(RepeatedEndings, WhatFollowedTheLastTokensBefore) {
  // 1 2 3 was followed by 9; 2 3 after 7 by 8; 3 after 6 by 5.
  const Tokens tokens = {1, 2, 3, 9, 7, 2, 3, 8, 6, 3, 5, 1, 2, 3};
  EXPECT_EQ(RepeatedEndings(tokens, 1, {}), (Endings{{5, 1}, {8, 2}, {9, 3}}));
  EXPECT_EQ(RepeatedEndings(tokens, 2, {}), (Endings{{8, 2}, {9, 3}}));
  EXPECT_EQ(RepeatedEndings(tokens, 3, {}), (Endings{{9, 3}}));
  EXPECT_EQ(RepeatedEndings(tokens, 4, {}), Endings{});
}

TEST(RepeatedEndings, TheLongestOfAnIdCounts) {
  EXPECT_EQ(RepeatedEndings(Tokens{2, 9, 1, 2, 9, 1, 2}, 1, {}), (Endings{{9, 4}}));
  EXPECT_EQ(RepeatedEndings(Tokens{4, 4, 4, 4}, 2, {}), (Endings{{4, 3}}));
}

TEST(RepeatedEndings, EndAtBreakers) {
  const Tokens tokens = {1, 2, 3, 9, 1, 2, 3};
  EXPECT_EQ(RepeatedEndings(tokens, 1, Tokens{1}), (Endings{{9, 2}}));
  EXPECT_EQ(RepeatedEndings(tokens, 1, Tokens{2, 50}), (Endings{{9, 1}}));
  EXPECT_EQ(RepeatedEndings(tokens, 2, Tokens{2, 50}), Endings{});
  EXPECT_EQ(RepeatedEndings(tokens, 1, Tokens{3}), Endings{});
}

TEST(RepeatedEndings, BreakersMayComeAgain) {
  EXPECT_EQ(RepeatedEndings(Tokens{1, 2, 3, 1, 2}, 2, Tokens{3}), Endings{});
  EXPECT_EQ(RepeatedEndings(Tokens{1, 2, 3, 1, 2, 4, 1, 2}, 2, Tokens{3}), (Endings{{4, 2}}));
}

TEST(RepeatedEndings, OfNothing) {
  EXPECT_EQ(RepeatedEndings(Tokens{}, 1, {}), Endings{});
  EXPECT_EQ(RepeatedEndings(Tokens{7}, 1, {}), Endings{});
  EXPECT_EQ(RepeatedEndings(Tokens{7, 8}, 1, {}), Endings{});
}

}  // namespace
}  // namespace tandem::coordinator
