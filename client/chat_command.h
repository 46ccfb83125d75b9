// `tandem chat` runs the program tandem_chat: chat templates are Jinja's, and so Python's.
#ifndef TANDEM_CLIENT_CHAT_COMMAND_H_
#define TANDEM_CLIENT_CHAT_COMMAND_H_

#include "absl/status/status.h"

namespace tandem::client {

// `argv` is that of `tandem`, whose second argument is "chat"; those after it are tandem_chat's.
bool IsChat(int argc, const char* const* argv);
// Becomes tandem_chat, which lies beside this program; returns only if that fails.
absl::Status BecomeChat(char** argv);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_CHAT_COMMAND_H_
