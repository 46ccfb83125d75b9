// RequestDeadline: until when a call is worth an answer. gRPC says so in wall-clock time, the
// engine counts on a clock that nobody sets.
#ifndef TANDEM_COORDINATOR_API_REQUEST_DEADLINE_H_
#define TANDEM_COORDINATOR_API_REQUEST_DEADLINE_H_

#include <chrono>

#include "common/base/clock.h"

namespace tandem::coordinator {

using WallTime = std::chrono::system_clock::time_point;

// The earlier of a call's own deadline, WallTime::max() if it has none, and of the server's
// `timeout` for a call that comes at `now`, which the wall clock calls `wall_now`; 0: none.
// TimePoint::max() if there is neither.
TimePoint RequestDeadline(WallTime of_call, WallTime wall_now, Duration timeout, TimePoint now);

// How much before its deadline, which is `left` away when a call comes, its client may already have
// given up: the client's own clock began when it sent the call, and gRPC rounds the time that it
// tells the server up, by as much as a hundredth. A cancel as late is a deadline that has passed.
Duration GivenUpBefore(Duration left);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_REQUEST_DEADLINE_H_
