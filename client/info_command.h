// `tandem info`: what a model file holds, and what running it takes.
#ifndef TANDEM_CLIENT_INFO_COMMAND_H_
#define TANDEM_CLIENT_INFO_COMMAND_H_

#include "client/command.h"

namespace CLI {
class App;
}

namespace tandem::client {

void AddInfoCommand(CLI::App& app, Action& action);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_INFO_COMMAND_H_
