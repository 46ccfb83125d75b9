// Connection to a server: a gRPC channel, and errors and time-outs in our own types.
#ifndef TANDEM_CLIENT_CHANNEL_H_
#define TANDEM_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace tandem::client {

inline constexpr char kDefaultServer[] = "127.0.0.1:50051";

// Connects when first used. INVALID_ARGUMENT when `server` is not HOST:PORT. Responses may have any
// size; a refused connection is retried within a second.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& server);

// The same code. Messages of connection errors are prefixed with "SERVER: ".
absl::Status FromGrpc(const grpc::Status& status, const std::string& server);

// "60s", "1.5m", "500ms", or seconds as a number. INVALID_ARGUMENT unless it is positive and at
// most a year.
absl::StatusOr<Duration> ParseTimeout(const std::string& text);

// `timeout` from now, for grpc::ClientContext::set_deadline.
std::chrono::system_clock::time_point DeadlineAfter(Duration timeout);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_CHANNEL_H_
