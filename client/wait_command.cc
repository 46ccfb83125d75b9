#include <memory>
#include <string>

#include "client/channel.h"
#include "client/commands.h"
#include "client/health_wait.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

struct WaitOptions {
  std::string server = kDefaultServer;
  std::string timeout = "60s";
};

absl::Status Wait(const WaitOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const Duration timeout, ParseTimeout(options.timeout));
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.server));
  return WaitUntilServing(channel, options.server, timeout);
}

}  // namespace

void AddWaitCommand(cli::Command& program) {
  auto options = std::make_shared<WaitOptions>();
  cli::Command& command =
      program.AddCommand("wait", "until a server serves, by its health service",
                         "Examples:\n"
                         "  tandem wait --server 127.0.0.1:50051 --timeout 60s && echo it serves");
  command.Add({options->server, {.flag = "--server", .help = "HOST:PORT"}});
  command.Add({options->timeout, {.flag = "--timeout", .help = "such as 500ms, 60s or 5m"}});
  command.OnRun([options] { return Wait(*options); });
}

}  // namespace tandem::client
