// Time behind a seam: the system's monotonic clock, or a simulated one that a test turns by hand.
#ifndef TANDEM_COMMON_BASE_CLOCK_H_
#define TANDEM_COMMON_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace tandem {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;

  // The process-wide monotonic clock.
  static const Clock& System();
};

// A clock that stands still until Advance. Not thread-safe: single-threaded simulations own it.
class SimulatedClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

// The latest moment at which a wait may end. A value; passed down through every blocking call.
class Deadline {
 public:
  static Deadline After(Duration wait) { return Deadline(std::chrono::steady_clock::now() + wait); }
  static Deadline At(TimePoint when) { return Deadline(when); }

  TimePoint when() const { return when_; }
  bool Passed() const { return std::chrono::steady_clock::now() >= when_; }
  // Time left, never negative.
  Duration Left() const {
    auto left = when_ - std::chrono::steady_clock::now();
    return left.count() > 0 ? std::chrono::duration_cast<Duration>(left) : Duration::zero();
  }

 private:
  explicit Deadline(TimePoint when) : when_(when) {}
  TimePoint when_;
};

// Microseconds since an arbitrary start, for the step's own timings.
inline int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_CLOCK_H_
