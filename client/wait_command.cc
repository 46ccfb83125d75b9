#include <chrono>
#include <memory>
#include <string>

#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "client/health_wait.h"

namespace tandem::client {
namespace {

struct WaitOptions {
  std::string server = kDefaultServer;
  std::string service{};
  Duration timeout = std::chrono::seconds(60);
};

absl::Status Wait(const WaitOptions& options) {
  return WaitUntilServing(MakeChannel(options.server), options.server, options.service,
                          options.timeout);
}

}  // namespace

void AddWaitCommand(cli::Command& program) {
  auto options = std::make_shared<WaitOptions>();
  cli::Command& command =
      program.AddCommand("wait", "until a server serves, by its health service",
                         "Examples:\n"
                         "  tandem wait --server 127.0.0.1:50051 --timeout 60s && echo it serves\n"
                         "  tandem wait --service readiness --timeout 1s");
  AddServerFlag(command, options->server);
  command.Add({options->service,
               {.flag = "--service",
                .help = "of the health service: startup, liveness or readiness, as probes ask "
                        "(default: whether requests are taken)"}});
  AddTimeoutFlag(command, options->timeout, "such as 500ms, 60s or 5m");
  command.OnRun([options] { return Wait(*options); });
}

}  // namespace tandem::client
