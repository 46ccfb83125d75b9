// What systemd is told of a server that it starts: NotifyServiceManager says how far the server is
// (units with Type=notify), by sd_notify's protocol: a datagram to the socket that $NOTIFY_SOCKET
// names. StartTime asks for more time.
#ifndef TANDEM_COORDINATOR_STARTUP_SERVICE_MANAGER_H_
#define TANDEM_COORDINATOR_STARTUP_SERVICE_MANAGER_H_

#include <chrono>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace tandem::coordinator {

// `state`: "READY=1" once requests are answered, "STOPPING=1" when that ends. OK without the
// variable: nothing waits for it. InvalidArgument: the variable names no socket. Unavailable: it
// does not take the message. Never waits.
absl::Status NotifyServiceManager(std::string_view state);

// The time that a start may take, which a model that is fetched first would use up: as long as the
// fetch gets on, the manager is asked to wait longer. One thread.
class StartTime {
 public:
  explicit StartTime(const Clock& clock = Clock::System()) : clock_(clock) {}

  // A piece of the model has come: what remains may take kExtension from now. Asks once a minute at
  // most. Errors as of NotifyServiceManager.
  absl::Status Progressed();

  // TimeoutStartSec of the unit: the longest that a model takes to load.
  static constexpr std::chrono::minutes kExtension{20};

 private:
  const Clock& clock_;
  std::optional<TimePoint> asked_at_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_SERVICE_MANAGER_H_
