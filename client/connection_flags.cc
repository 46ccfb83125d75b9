#include "client/connection_flags.h"

#include "common/base/address.h"
#include "common/base/status.h"

namespace tandem::client {

void AddServerFlag(cli::Command& command, std::string& server) {
  command.Add({server, {.flag = "--server", .help = "HOST:PORT"}});
  command.OnCheck([&server] { return Annotate(ParseHostPort(server).status(), "--server"); });
}

void AddTimeoutFlag(cli::Command& command, Duration& timeout, std::string_view help) {
  constexpr double kYear = 366 * 24 * 3600;
  command.Add({timeout, {.flag = "--timeout", .help = help, .least = 1e-3, .most = kYear}});
}

}  // namespace tandem::client
