#include "common/base/clock.h"

namespace tandem {
namespace {

class SystemClock : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  void WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                 TimePoint when) const override {
    changed.wait_until(lock, when);
  }
};

}  // namespace

const Clock& Clock::System() {
  static const SystemClock* clock = new SystemClock;
  return *clock;
}

}  // namespace tandem
