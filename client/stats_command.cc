#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "client/json_forms.h"
#include "client/stats_text.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::client {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(10);

struct StatsOptions {
  Connection connection;
  bool json = false;
};

absl::Status Stats(const StatsOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.connection));
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(kTimeout));
  v1::GetStatsResponse stats;
  TANDEM_RETURN_IF_ERROR(
      FromGrpc(v1::Generation::NewStub(channel)->GetStats(&context, v1::GetStatsRequest(), &stats),
               options.connection.server));
  return cli::Print(options.json ? ToJson(stats) + "\n" : FormatStats(stats));
}

}  // namespace

void AddStatsCommand(cli::Command& program) {
  auto options = std::make_shared<StatsOptions>();
  cli::Command& command = program.AddCommand("stats", "a server's blocks, requests and steps",
                                             "Examples:\n"
                                             "  tandem stats --server 127.0.0.1:50051\n"
                                             "  tandem stats --json | jq .tandem_kv_blocks_free");
  AddConnectionFlags(command, options->connection);
  command.Add({options->json, {.flag = "--json", .help = "for programs"}});
  command.OnRun([options] { return Stats(*options); });
}

}  // namespace tandem::client
