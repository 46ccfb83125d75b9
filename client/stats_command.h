// `tandem stats`: a server's counters.
#ifndef TANDEM_CLIENT_STATS_COMMAND_H_
#define TANDEM_CLIENT_STATS_COMMAND_H_

#include "client/command.h"

namespace CLI {
class App;
}

namespace tandem::client {

void AddStatsCommand(CLI::App& app, Action& action);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_STATS_COMMAND_H_
