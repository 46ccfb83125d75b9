// `tandem info`: the content of a model file, and the resources to run it.
#ifndef TANDEM_CLIENT_INFO_COMMAND_H_
#define TANDEM_CLIENT_INFO_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddInfoCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_INFO_COMMAND_H_
