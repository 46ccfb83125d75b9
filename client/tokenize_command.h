// `tandem tokenize`: text from stdin to token ids.
#ifndef TANDEM_CLIENT_TOKENIZE_COMMAND_H_
#define TANDEM_CLIENT_TOKENIZE_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddTokenizeCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_TOKENIZE_COMMAND_H_
