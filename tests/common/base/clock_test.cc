#include "common/base/clock.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

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

TEST(SimulatedClockTest, AWaitEndsAtItsDeadlineWithoutTakingTime) {
  SimulatedClock clock;
  const Deadline deadline = Deadline::After(std::chrono::hours(1), clock);
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_TRUE(deadline.Wait(changed, lock, [] { return true; }));
  EXPECT_FALSE(deadline.Passed());
  EXPECT_EQ(deadline.Left(), std::chrono::hours(1));
  EXPECT_FALSE(deadline.Wait(changed, lock, [] { return false; }));
  EXPECT_TRUE(deadline.Passed());
  EXPECT_EQ(clock.Now(), deadline.when());
}

TEST(SystemClockTest, NeverRunsBackwards) {
  const TimePoint before = Clock::System().Now();
  EXPECT_GE(Clock::System().Now(), before);
}

TEST(DeadlineTest, ReportsTheTimeLeft) {
  const Deadline far = Deadline::After(seconds(3600));
  EXPECT_FALSE(far.Passed());
  EXPECT_GT(far.Left(), seconds(3000));
  const Deadline past = Deadline::At(TimePoint{});
  EXPECT_TRUE(past.Passed());
  EXPECT_EQ(past.Left(), Duration::zero());
}

TEST(DeadlineTest, OrAfterIsTheEarlierOnTheSameClock) {
  SimulatedClock clock;
  const Deadline deadline = Deadline::After(seconds(10), clock);
  EXPECT_EQ(deadline.OrAfter(seconds(3)).when(), clock.Now() + seconds(3));
  EXPECT_EQ(deadline.OrAfter(seconds(30)).when(), deadline.when());
  EXPECT_EQ(&deadline.OrAfter(seconds(3)).clock(), &clock);
}

TEST(DeadlineTest, AWaitEndsWhenWhatItWaitsForIsTrue) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread other([&] {
    std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(Deadline::After(seconds(3600)).Wait(changed, lock, [&] { return done; }));
    EXPECT_FALSE(Deadline::After(seconds(0)).Wait(changed, lock, [] { return false; }));
  }
  other.join();
}

}  // namespace
}  // namespace tandem
