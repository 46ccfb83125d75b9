// The flags of the subcommands that call a server.
#ifndef TANDEM_CLIENT_CONNECTION_FLAGS_H_
#define TANDEM_CLIENT_CONNECTION_FLAGS_H_

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/cli/command.h"

namespace tandem::client {

inline constexpr char kDefaultServer[] = "127.0.0.1:50051";

// --server, checked to be HOST:PORT. `server` must outlive the parse.
void AddServerFlag(cli::Command& command, std::string& server);
// --timeout, positive and at most a year. `timeout` must outlive the parse.
void AddTimeoutFlag(cli::Command& command, Duration& timeout, std::string_view help);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_CONNECTION_FLAGS_H_
