// `tandem info`: what a model file holds, and what running it takes.
#ifndef TANDEM_CLIENT_INFO_COMMAND_H_
#define TANDEM_CLIENT_INFO_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddInfoCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_INFO_COMMAND_H_
