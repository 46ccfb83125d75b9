#include "common/transport/shared_futex.h"

#include <thread>

#include "common/base/cpu_set.h"
#include "gtest/gtest.h"

namespace tandem::transport {
namespace {

constexpr SpinPolicy kPark{};
constexpr SpinPolicy kSpin{.spin = std::chrono::microseconds(30),
                           .yield = std::chrono::microseconds(30)};

TEST(SharedFutexTest, ReturnsAtOnceWhenTheWordDiffers) {
  SharedWord word{};
  word.value = 3;
  WaitWhile(word, 2, kPark, Deadline::After(std::chrono::seconds(60)));
  EXPECT_EQ(word.value, 3u);
}

TEST(SharedFutexTest, EndsAtTheDeadline) {
  for (const SpinPolicy& policy : {kPark, kSpin}) {
    SharedWord word{};
    const Deadline deadline = Deadline::After(std::chrono::milliseconds(20));
    // Parking may end early, for a signal; never late for ever.
    while (!deadline.Passed()) WaitWhile(word, 0, policy, deadline);
    WaitWhile(word, 0, policy, Deadline::At(TimePoint()));
    EXPECT_EQ(word.waiters, 0u);
  }
}

// Two threads take turns; a lost wake-up would stand until the deadline.
void PingPong(const SpinPolicy& policy, uint32_t turns) {
  SharedWord ping{}, pong{};
  const Deadline deadline = Deadline::After(std::chrono::minutes(4));
  std::thread other([&] {
    for (uint32_t turn = 0; turn < turns && !deadline.Passed(); ++turn) {
      while (ping.value == turn && !deadline.Passed()) WaitWhile(ping, turn, policy, deadline);
      AddAndNotify(pong, 1);
    }
  });
  for (uint32_t turn = 0; turn < turns && !deadline.Passed(); ++turn) {
    AddAndNotify(ping, 1);
    while (pong.value == turn && !deadline.Passed()) WaitWhile(pong, turn, policy, deadline);
  }
  other.join();
  EXPECT_FALSE(deadline.Passed());
  EXPECT_EQ(pong.value, turns);
}

TEST(SharedFutexTest, LosesNoWakeUpWhenParked) { PingPong(kPark, 20000); }
TEST(SharedFutexTest, LosesNoWakeUpWhenSpinning) { PingPong(kSpin, 20000); }

TEST(SharedFutexTest, BitsAreSetOnce) {
  SharedWord word{};
  word.value = 4;
  SetBitsAndNotify(word, 1);
  SetBitsAndNotify(word, 1);
  EXPECT_EQ(word.value, 5u);
}

TEST(SpinPolicyTest, DoesNotSpinWhenThereAreMorePartiesThanCores) {
  const auto spin = std::chrono::microseconds(50);
  const SpinPolicy crowded = SpinPolicy::For(1 << 20, spin, spin);
  EXPECT_EQ(crowded.spin, Duration::zero());
  EXPECT_EQ(crowded.yield, spin);
  EXPECT_EQ(SpinPolicy::For(1, spin, spin).spin, spin);
}

TEST(SpinPolicyTest, CountsTheCoresOfTheProcessNotOfTheThread) {
  const CpuSet all = UsableCpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto spin = std::chrono::microseconds(50);
  std::thread([&] {
    ASSERT_TRUE(RestrictThread({all[0]}).ok());
    EXPECT_EQ(SpinPolicy::For(2, spin, spin).spin, spin);
  }).join();
}

}  // namespace
}  // namespace tandem::transport
