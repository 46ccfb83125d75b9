// A short run of the simulation, its determinism, and the seeds that have found errors.
#include <gtest/gtest.h>

#include "common/base/log.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace tandem::sim {
namespace {

class SimTest : public testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(static_cast<LogLevel>(static_cast<int>(LogLevel::kError) + 1));
  }
  // A violation ends the process, with the command that replays it.
  static Report Run(uint64_t seed, uint64_t num_steps) {
    const RunId run{.seed = seed, .num_steps = num_steps};
    BeginRun(run);
    return World(run).Run();
  }
};

TEST_F(SimTest, NoSeedFindsAViolation) {
  Report all;
  for (uint64_t seed = 1; seed <= 60; ++seed) all.Add(Run(seed, 250));
  // It is not idle: every part has had work.
  EXPECT_GT(all.steps, 10000u);
  EXPECT_GT(all.tokens, 10000u);
  EXPECT_GT(all.losses, 100u);
  EXPECT_GT(all.preemptions, 20u);
  EXPECT_GT(all.cached_tokens, 1000u);
  EXPECT_GT(all.accepted_guesses, 20u);
  EXPECT_GT(all.unguessed_steps, 20u);
  EXPECT_GT(all.accepted_drafts, all.accepted_guesses + 20);
}

TEST_F(SimTest, ASeedReplaysExactly) {
  for (uint64_t seed : {3, 11, 42}) {
    EXPECT_EQ(Run(seed, 200).trace, Run(seed, 200).trace) << "seed " << seed;
  }
  EXPECT_NE(Run(3, 200).trace, Run(4, 200).trace);
}

}  // namespace
}  // namespace tandem::sim
