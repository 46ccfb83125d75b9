// `tandem bench`: prefill and decode speed through real workers, without a server.
#ifndef TANDEM_CLIENT_BENCH_BENCH_COMMAND_H_
#define TANDEM_CLIENT_BENCH_BENCH_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddBenchCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_BENCH_COMMAND_H_
