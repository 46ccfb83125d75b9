// The flags of the subcommands that call a server.
#ifndef TANDEM_CLIENT_CONNECTION_FLAGS_H_
#define TANDEM_CLIENT_CONNECTION_FLAGS_H_

#include <string>
#include <string_view>

#include "client/connection.h"
#include "common/base/clock.h"
#include "common/cli/command.h"
#include "common/config/field.h"

namespace tandem::client {

// The flags of how to connect to a server, without --server itself, for lists with more flags.
void VisitConnection(Connection& connection, config::FieldList& visit);
// --server and how to connect to it, checked. `connection` must outlive the parse.
void AddConnectionFlags(cli::Command& command, Connection& connection);
// --timeout, positive and at most a year. `timeout` must outlive the parse.
void AddTimeoutFlag(cli::Command& command, Duration& timeout, std::string_view help);
// --adapter of a request.
void AddAdapterFlag(cli::Command& command, std::string& adapter);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_CONNECTION_FLAGS_H_
