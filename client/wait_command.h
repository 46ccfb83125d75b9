// `tandem wait`: until a server serves.
#ifndef TANDEM_CLIENT_WAIT_COMMAND_H_
#define TANDEM_CLIENT_WAIT_COMMAND_H_

#include "common/cli/command.h"

namespace tandem::client {

void AddWaitCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_WAIT_COMMAND_H_
