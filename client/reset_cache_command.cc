#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "common/base/status.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::client {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(10);

absl::Status ResetCache(const Connection& connection) {
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(connection));
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(kTimeout));
  v1::ResetPrefixCacheResponse response;
  return FromGrpc(v1::Generation::NewStub(channel)->ResetPrefixCache(
                      &context, v1::ResetPrefixCacheRequest(), &response),
                  connection.server);
}

}  // namespace

void AddResetCacheCommand(cli::Command& program) {
  auto connection = std::make_shared<Connection>();
  cli::Command& command = program.AddCommand(
      "reset-cache", "makes a server forget the prompts that its prefix cache holds",
      "Running requests keep their blocks; what comes afterwards shares only with what is computed "
      "anew.\nWhere the server asks for tokens, this needs the scope admin.\n\n"
      "Example:\n"
      "  tandem reset-cache --server 127.0.0.1:50051");
  AddConnectionFlags(command, *connection);
  command.OnRun([connection] { return ResetCache(*connection); });
}

}  // namespace tandem::client
