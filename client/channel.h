// Connection to a server: a gRPC channel, and errors and deadlines in our own types.
#ifndef TANDEM_CLIENT_CHANNEL_H_
#define TANDEM_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "common/base/clock.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace tandem::client {

// Connects when first used. Responses may have any size; a refused connection is retried within a
// second. INVALID_ARGUMENT with flag, path and reason for a file that can't be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Connection& connection);
// The same in plain text, without a token.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server);

// The same code. Messages of connection errors are prefixed with "SERVER: ".
absl::Status FromGrpc(const grpc::Status& status, const std::string& server);

// `timeout` from now, for grpc::ClientContext::set_deadline.
std::chrono::system_clock::time_point DeadlineAfter(Duration timeout);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_CHANNEL_H_
