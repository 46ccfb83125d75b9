// `tandem wait`: until a server serves.
#ifndef TANDEM_CLIENT_WAIT_COMMAND_H_
#define TANDEM_CLIENT_WAIT_COMMAND_H_

#include "client/command.h"

namespace CLI {
class App;
}

namespace tandem::client {

void AddWaitCommand(CLI::App& app, Action& action);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_WAIT_COMMAND_H_
