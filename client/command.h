// What a subcommand of `tandem` is: it registers its flags and says, once it is chosen, what to do.
#ifndef TANDEM_CLIENT_COMMAND_H_
#define TANDEM_CLIENT_COMMAND_H_

#include <functional>

#include "absl/status/status.h"

namespace tandem::client {

// Runs after the command line is parsed. An error becomes one line on stderr and exit status 1.
using Action = std::function<absl::Status()>;

inline constexpr char kDefaultServer[] = "127.0.0.1:50051";

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_COMMAND_H_
