#include "tests/sim/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "tests/sim/world.h"

namespace tandem::sim {
namespace {

bool IsWithout(const RunId& run, const std::string& part) {
  return std::ranges::count(run.without, part) > 0;
}

TEST(ShrinkTest, KeepsWhatTheViolationNeeds) {
  int num_runs = 0;
  const RunId least = Shrink({.seed = 7, .num_steps = 1100}, [&](const RunId& run) {
    ++num_runs;
    return run.seed == 7 && run.num_steps >= 317 && !IsWithout(run, "drafts") &&
           !IsWithout(run, "overlap");
  });
  EXPECT_EQ(least.num_steps, 317u);
  EXPECT_EQ(least.without.size(), Parts().size() - 2);
  EXPECT_FALSE(IsWithout(least, "drafts"));
  EXPECT_FALSE(IsWithout(least, "overlap"));
  EXPECT_LT(num_runs, 40);
}

TEST(ShrinkTest, KeepsARunThatNeedsEverything) {
  const RunId least = Shrink({.seed = 7, .num_steps = 1100}, [](const RunId& run) {
    return run.num_steps == 1100 && run.without.empty();
  });
  EXPECT_EQ(least.Command(), "./dev sim --seed 7 --steps 1100");
}

TEST(ShrinkTest, SaysHowToRunIt) {
  const RunId run{.seed = 3, .num_steps = 40, .without = {"faults", "ranks"}};
  EXPECT_EQ(run.Command(), "./dev sim --seed 3 --steps 40 --without faults,ranks");
  EXPECT_TRUE(IsPart("faults"));
  EXPECT_FALSE(IsPart("fault"));
}

// With any part left out, and with all, a run is one without violations.
TEST(ShrinkTest, RunsWithoutPartsAreRuns) {
  SetLogLevel(static_cast<LogLevel>(static_cast<int>(LogLevel::kError) + 1));
  RunId run{.num_steps = 100};
  for (run.seed = 1; run.seed <= 5; ++run.seed) {
    run.without.clear();
    const Report whole = World(run).Run();
    for (const Part& part : Parts()) {
      const RunId without_one{.seed = run.seed, .num_steps = 100, .without = {part.name}};
      EXPECT_FALSE(FailsInAnotherProcess(without_one)) << without_one.Command();
      run.without.emplace_back(part.name);
      EXPECT_FALSE(FailsInAnotherProcess(run)) << run.Command();
    }
    const Report least = World(run).Run();
    EXPECT_EQ(least.faults, 0u);
    EXPECT_EQ(least.losses, 0u);
    EXPECT_EQ(least.accepted_drafts, 0u);
    EXPECT_EQ(least.cached_tokens, 0u);
    EXPECT_NE(least.trace, whole.trace);
  }
}

}  // namespace
}  // namespace tandem::sim
