#include <chrono>
#include <memory>
#include <string>

#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "client/health_wait.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

struct WaitOptions {
  Connection connection;
  std::string service{};
  Duration timeout = std::chrono::seconds(60);
};

absl::Status Wait(const WaitOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.connection));
  return WaitUntilServing(channel, options.connection.server, options.service, options.timeout);
}

}  // namespace

void AddWaitCommand(cli::Command& program) {
  auto options = std::make_shared<WaitOptions>();
  cli::Command& command =
      program.AddCommand("wait", "until a server serves, by its health service",
                         "Examples:\n"
                         "  tandem wait --server 127.0.0.1:50051 --timeout 60s && echo it serves\n"
                         "  tandem wait --service readiness --timeout 1s");
  AddConnectionFlags(command, options->connection);
  command.Add({options->service,
               {.flag = "--service",
                .help = "of the health service: startup, liveness or readiness, as probes ask "
                        "(default: whether requests are taken)"}});
  AddTimeoutFlag(command, options->timeout, "such as 500ms, 60s or 5m");
  command.OnRun([options] { return Wait(*options); });
}

}  // namespace tandem::client
