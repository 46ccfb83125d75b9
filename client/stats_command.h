// `tandem stats`: a server's counters.
#ifndef TANDEM_CLIENT_STATS_COMMAND_H_
#define TANDEM_CLIENT_STATS_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddStatsCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_STATS_COMMAND_H_
