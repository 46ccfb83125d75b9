#include "common/base/clock.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using std::chrono::seconds;

TEST(SimulatedClockTest, StandsStillUntilAdvanced) {
  SimulatedClock clock;
  const TimePoint start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(seconds(3));
  EXPECT_EQ(clock.Now() - start, seconds(3));
}

TEST(SystemClockTest, NeverRunsBackwards) {
  const TimePoint before = Clock::System().Now();
  EXPECT_GE(Clock::System().Now(), before);
}

TEST(DeadlineTest, KnowsWhatIsLeft) {
  const Deadline far = Deadline::After(seconds(3600));
  EXPECT_FALSE(far.Passed());
  EXPECT_GT(far.Left(), seconds(3000));
  const Deadline past = Deadline::At(TimePoint{});
  EXPECT_TRUE(past.Passed());
  EXPECT_EQ(past.Left(), Duration::zero());
}

}  // namespace
}  // namespace tandem
