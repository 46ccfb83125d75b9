#include "coordinator/speculation/scripted_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Rising(size_t length) {
  Tokens tokens(length);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(ScriptedDrafterTest, GuessesTheScriptToItsEnd) {
  ScriptedDrafter drafter({.tokens = Rising(10)});
  EXPECT_EQ(drafter.Draft(Rising(3), 4), (Tokens{3, 4, 5, 6}));
  EXPECT_EQ(drafter.Draft(Rising(8), 4), (Tokens{8, 9}));
  EXPECT_TRUE(drafter.Draft(Rising(10), 4).empty());
  EXPECT_TRUE(drafter.Draft(Rising(12), 4).empty());
}

TEST(ScriptedDrafterTest, AsManyAreRightAsWasAskedFor) {
  const Tokens script = Rising(10000);
  for (const double acceptance : {0.0, 0.3, 0.8, 1.0}) {
    ScriptedDrafter drafter({.tokens = script, .acceptance = acceptance, .seed = 5});
    const Tokens guesses = drafter.Draft({}, 10000);
    int right = 0;
    for (size_t i = 0; i < script.size(); ++i) right += guesses[i] == script[i];
    EXPECT_NEAR(right, 10000 * acceptance, acceptance == 0 || acceptance == 1 ? 0 : 150);
    EXPECT_GE(*std::ranges::min_element(guesses), 0);
  }
}

TEST(ScriptedDrafterTest, APositionHasOneGuess) {
  const Tokens script = Rising(50);
  ScriptedDrafter drafter({.tokens = script, .acceptance = 0.5, .seed = 7});
  const Tokens all = drafter.Draft({}, 50);
  for (size_t begin = 1; begin < 50; ++begin) {
    const Tokens guesses = drafter.Draft(std::span(script).first(begin), 50);
    EXPECT_TRUE(std::ranges::equal(guesses, std::span(all).subspan(begin)));
  }
  ScriptedDrafter other({.tokens = script, .acceptance = 0.5, .seed = 8});
  EXPECT_NE(other.Draft({}, 50), all);
}

}  // namespace
}  // namespace tandem::coordinator
