#include "client/channel.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"

namespace tandem::client {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Time limit of one attempt, generous even for a busy machine.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A server on this machine is never behind a proxy.
  if (IsLoopback(server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& server) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const bool of_the_connection = code == absl::StatusCode::kUnavailable ||
                                 code == absl::StatusCode::kDeadlineExceeded ||
                                 code == absl::StatusCode::kUnimplemented;
  return {code, of_the_connection ? absl::StrCat(server, ": ", status.error_message())
                                  : status.error_message()};
}

std::chrono::system_clock::time_point DeadlineAfter(Duration timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
}

}  // namespace tandem::client
