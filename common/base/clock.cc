#include "common/base/clock.h"

namespace tandem {
namespace {

class SystemClock : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& Clock::System() {
  static const SystemClock* clock = new SystemClock;
  return *clock;
}

}  // namespace tandem
