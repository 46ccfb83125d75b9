// `tandem tokenize`: text from stdin to token ids.
#ifndef TANDEM_CLIENT_TOKENIZE_COMMAND_H_
#define TANDEM_CLIENT_TOKENIZE_COMMAND_H_

#include "client/command.h"

namespace CLI {
class App;
}

namespace tandem::client {

void AddTokenizeCommand(CLI::App& app, Action& action);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_TOKENIZE_COMMAND_H_
