// `tandem generate`: continues prompts.
#ifndef TANDEM_CLIENT_GENERATE_COMMAND_H_
#define TANDEM_CLIENT_GENERATE_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddGenerateCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_GENERATE_COMMAND_H_
