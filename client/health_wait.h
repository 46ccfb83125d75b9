// Waits for a server by its standard health service.
#ifndef TANDEM_CLIENT_HEALTH_WAIT_H_
#define TANDEM_CLIENT_HEALTH_WAIT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/channel.h"
#include "common/base/clock.h"

namespace tandem::client {

// Returns as soon as the status of `service` (empty: of the server as a whole) is SERVING.
// DEADLINE_EXCEEDED, with the last answer, after `timeout`; at once, UNIMPLEMENTED from a server
// that has no health service, NOT_FOUND from one that does not know `service`.
absl::Status WaitUntilServing(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& server, const std::string& service,
                              Duration timeout);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_HEALTH_WAIT_H_
