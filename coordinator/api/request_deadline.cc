#include "coordinator/api/request_deadline.h"

#include <algorithm>

namespace tandem::coordinator {
namespace {

// Beyond any server's life, and small enough to be added to a time.
constexpr auto kLongest = std::chrono::hours(24 * 365);
// What a call takes to arrive, on a busy machine.
constexpr Duration kTravel = std::chrono::milliseconds(200);

}  // namespace

TimePoint RequestDeadline(WallTime of_call, WallTime wall_now, Duration timeout, TimePoint now) {
  TimePoint deadline = TimePoint::max();
  // Compared before it is subtracted: WallTime::max() has no distance to other times.
  if (of_call < wall_now + kLongest) {
    deadline = now + (std::max(of_call, wall_now) - wall_now);
  }
  if (timeout > Duration::zero()) deadline = std::min(deadline, now + timeout);
  return deadline;
}

Duration GivenUpBefore(Duration left) { return std::min(left / 100 + kTravel, left / 2); }

}  // namespace tandem::coordinator
