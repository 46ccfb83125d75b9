#include "client/channel.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/bearer_token.h"
#include "common/base/address.h"
#include "common/base/status.h"
#include "common/base/token_file.h"
#include "common/rpc/channel_credentials.h"

namespace tandem::client {

namespace {

constexpr TlsFlags kTlsFlags{
    .cert = "--tls-client-cert", .key = "--tls-client-key", .ca = "--tls-ca"};

grpc::ChannelArguments Arguments(const Connection& connection) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Time limit of one attempt, generous even for a busy machine.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A server on this machine is never behind a proxy.
  if (IsLoopback(connection.server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (connection.all_addresses) arguments.SetLoadBalancingPolicyName("round_robin");
  if (!connection.tls_server_name.empty()) {
    arguments.SetSslTargetNameOverride(connection.tls_server_name);
  }
  return arguments;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const Connection& connection) {
  const TlsFiles files{.cert = connection.tls_client_cert,
                       .key = connection.tls_client_key,
                       .ca = connection.tls_ca};
  if (connection.has_tls() && files.empty()) return grpc::SslCredentials({});
  return MakeChannelCredentials(kTlsFlags, files);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Connection& connection) {
  std::string token;
  if (!connection.token_file.empty()) {
    TANDEM_ASSIGN_OR_RETURN(token, ReadTokenFile("--token-file", connection.token_file));
  }
  TANDEM_ASSIGN_OR_RETURN(const auto credentials, Credentials(connection));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      connection.server, credentials, Arguments(connection), ShowToken(token));
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server) {
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(),
                                   Arguments({.server = server}));
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
