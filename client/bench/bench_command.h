// `tandem bench`: prefill and decode speed through real workers, without a server.
#ifndef TANDEM_CLIENT_BENCH_BENCH_COMMAND_H_
#define TANDEM_CLIENT_BENCH_BENCH_COMMAND_H_

#include "client/command.h"

namespace CLI {
class App;
}

namespace tandem::client {

void AddBenchCommand(CLI::App& app, Action& action);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_BENCH_COMMAND_H_
