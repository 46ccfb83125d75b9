// `tandem generate`: continues prompts.
#ifndef TANDEM_CLIENT_GENERATE_COMMAND_H_
#define TANDEM_CLIENT_GENERATE_COMMAND_H_

#include "client/command.h"

namespace CLI {
class App;
}

namespace tandem::client {

void AddGenerateCommand(CLI::App& app, Action& action);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_GENERATE_COMMAND_H_
