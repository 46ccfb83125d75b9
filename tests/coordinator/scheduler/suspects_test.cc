// Sequences that may be what ends their workers.
#include <gtest/gtest.h>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

SchedulerConfig TwoStrikes(uint32_t seqs, uint32_t budget, uint32_t chunk) {
  SchedulerConfig config = Config(seqs, budget, chunk);
  config.max_strikes = 2;
  return config;
}

TEST(SuspectsTest, SuspectsAreComputedAloneUntilTheyMakeProgress) {
  Driver driver(TwoStrikes(4, 8, 8), 64);
  driver.Add(3);
  driver.Add(3);
  driver.Add(6);
  driver.Step();
  EXPECT_EQ(driver.Lose(), nullptr);
  EXPECT_EQ(driver.last().DebugString(), "decode 1+1 decode 2+1 prefill 3+4");
  EXPECT_EQ(driver.Lose(), nullptr);
  EXPECT_EQ(driver.last().DebugString(), "prefill 1+4 prefill 2+4");
  // The third one took part in one of the losses only.
  driver.Add(1);
  EXPECT_EQ(driver.Step(), "prefill 1+4");
  EXPECT_EQ(driver.Step(), "prefill 2+4");
  EXPECT_EQ(driver.Step(), "prefill 1+5 prefill 2+3");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+2 prefill 3+5");
}

TEST(SuspectsTest, ASuspectLostAloneIsTheCulprit) {
  Driver driver(TwoStrikes(4, 8, 4), 64);
  Sequence& a = driver.Add(6);
  driver.Add(2);
  driver.Lose();
  driver.Lose();
  // Its tokens that were in a lost step are not all computed yet.
  a.lost_end = 6;
  EXPECT_EQ(driver.Step(), "prefill 1+4");
  EXPECT_EQ(driver.Lose(/*blame=*/false), nullptr);
  EXPECT_EQ(driver.Step(), "prefill 1+4");
  EXPECT_EQ(driver.Lose(), &a);
  EXPECT_EQ(driver.last().DebugString(), "prefill 1+2");
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+2");
  EXPECT_EQ(driver.Step(), "prefill 2+3") << "it waited once more, and runs with others now";
}

TEST(SuspectsTest, LossesWithProgressBetweenThemMakeNoSuspect) {
  Driver driver(TwoStrikes(4, 64, 64), 64);
  driver.Add(3);
  driver.Add(3);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(driver.Lose(), nullptr);
    EXPECT_EQ(driver.last().entries.size(), 2u);
    driver.Step();
  }
}

TEST(SuspectsTest, ASuspectThatEndsLeavesTheOthersTheirTurn) {
  Driver driver(TwoStrikes(4, 8, 8), 64);
  Sequence& a = driver.Add(2);
  Sequence& b = driver.Add(2);
  driver.Add(2);
  driver.Lose();
  driver.Lose();
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+2");
  driver.scheduler().Finish(b);
  EXPECT_EQ(driver.Step(), "prefill 3+2");
  EXPECT_EQ(driver.Step(), "prefill 3+3");
}

}  // namespace
}  // namespace tandem::coordinator
