// An interface to time: the system's monotonic clock, or a simulated one. A Deadline refers to its
// clock, so that waits with derived deadlines use the same clock.
#ifndef TANDEM_COMMON_BASE_CLOCK_H_
#define TANDEM_COMMON_BASE_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "common/base/thread_annotations.h"

namespace tandem {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  // Waits until `changed` is notified, at most until `when`. May wake early. `lock` is held.
  virtual void WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                         TimePoint when) const = 0;

  // The process-wide monotonic clock.
  static const Clock& System();
};

// A clock that advances only by Advance or by a wait: in a single-threaded simulation nothing else
// can happen during a wait, so it takes no real time and ends at its deadline. Not thread-safe.
class SimulatedClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void WaitUntil(std::condition_variable&, std::unique_lock<std::mutex>&,
                 TimePoint when) const override {
    now_ = std::max(now_, when);
  }
  void Advance(Duration by) { now_ += by; }

 private:
  mutable TimePoint now_{};
};

// The latest moment, on its clock, at which a wait may end. A value; passed down through every
// blocking call. Waits in the kernel or in gRPC (futex, process, channel) take deadlines of the
// system's clock only.
class Deadline {
 public:
  // `clock` must outlive the deadline.
  static Deadline After(Duration wait, const Clock& clock = Clock::System()) {
    return Deadline(clock.Now() + wait, clock);
  }
  static Deadline At(TimePoint when, const Clock& clock = Clock::System()) {
    return Deadline(when, clock);
  }

  TimePoint when() const { return when_; }
  const Clock& clock() const { return *clock_; }
  bool Passed() const { return clock_->Now() >= when_; }
  // Time left, never negative.
  Duration Left() const { return std::max<Duration>(when_ - clock_->Now(), Duration::zero()); }
  // The earlier of this deadline and `wait` from now.
  Deadline OrAfter(Duration wait) const {
    return Deadline(std::min(when_, clock_->Now() + wait), *clock_);
  }

  // Waits on `changed` until `done()` or until the deadline has passed. Returns done().
  template <typename Done>
  bool Wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
            Done done) const TANDEM_NO_THREAD_SAFETY_ANALYSIS {
    while (!done()) {
      if (Passed()) return false;
      clock_->WaitUntil(changed, lock, when_);
    }
    return true;
  }

 private:
  Deadline(TimePoint when, const Clock& clock) : when_(when), clock_(&clock) {}
  TimePoint when_;
  const Clock* clock_;
};

// Microseconds since an arbitrary start, for step timings.
inline int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_CLOCK_H_
