// NotifyServiceManager tells systemd how far the server is (units with Type=notify), by sd_notify's
// protocol: a datagram to the socket that $NOTIFY_SOCKET names.
#ifndef TANDEM_COORDINATOR_STARTUP_SERVICE_MANAGER_H_
#define TANDEM_COORDINATOR_STARTUP_SERVICE_MANAGER_H_

#include <string_view>

#include "absl/status/status.h"

namespace tandem::coordinator {

// `state`: "READY=1" once requests are answered, "STOPPING=1" when that ends. OK without the
// variable: nothing waits for it. InvalidArgument: the variable names no socket. Unavailable: it
// does not take the message. Never waits.
absl::Status NotifyServiceManager(std::string_view state);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_SERVICE_MANAGER_H_
