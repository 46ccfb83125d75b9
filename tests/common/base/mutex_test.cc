#include "common/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

namespace tandem {
namespace {

constexpr auto kLong = std::chrono::seconds(60);

// A value handed from one thread to the other and back, `turn` saying whose it is.
class Exchange {
 public:
  bool Take(int whose, Deadline deadline) {
    MutexLock lock(mutex_);
    const bool mine =
        changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) { return turn_ == whose; });
    if (mine) ++value_;
    return mine;
  }
  void Give(int whose) {
    {
      MutexLock lock(mutex_);
      turn_ = whose;
    }
    changed_.NotifyAll();
  }
  int value() {
    MutexLock lock(mutex_);
    return value_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int turn_ TANDEM_GUARDED_BY(mutex_) = 0;
  int value_ TANDEM_GUARDED_BY(mutex_) = 0;
};

TEST(MutexTest, WaitersSeeWhatWasChangedUnderTheMutex) {
  Exchange exchange;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(exchange.Take(1, Deadline::After(kLong)));
      exchange.Give(0);
    }
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(exchange.Take(0, Deadline::After(kLong)));
    exchange.Give(1);
  }
  other.join();
  EXPECT_EQ(exchange.value(), 200);
}

TEST(MutexTest, WaitEndsWithItsDeadline) {
  Exchange exchange;
  EXPECT_FALSE(exchange.Take(1, Deadline::After(Duration(0))));
  EXPECT_EQ(exchange.value(), 0);
}

TEST(MutexTest, UnlockedBetweenUnlockAndLock) {
  Mutex mutex;
  MutexLock lock(mutex);
  lock.Unlock();
  std::thread([&] { MutexLock from_elsewhere(mutex); }).join();
  lock.Lock();
}

}  // namespace
}  // namespace tandem
