#include "client/wait_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/channel.h"
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

void AddWaitCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<WaitOptions>();
  CLI::App* command = app.add_subcommand("wait", "until a server serves, by its health service");
  command->add_option("--server", options->server, "HOST:PORT")->capture_default_str();
  command->add_option("--timeout", options->timeout, "such as 500ms, 60s or 5m")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  tandem wait --server 127.0.0.1:50051 --timeout 60s && echo it serves");
  command->callback([options, &action] { action = [options] { return Wait(*options); }; });
}

}  // namespace tandem::client
