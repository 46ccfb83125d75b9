#include "client/chat_command.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/commands.h"

namespace tandem::client {

bool IsChat(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == "chat";
}

absl::Status BecomeChat(char** argv) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("/proc/self/exe: ", error.message(),
                                               "; tandem_chat is looked for beside this program"));
  }
  const std::string program = self.parent_path() / "tandem_chat";
  execv(program.c_str(), argv + 1);
  const int reason = errno;
  const std::string message = absl::StrCat(program, ": ", std::generic_category().message(reason));
  if (reason == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat(message, " (a package's install.sh --http installs it)"));
  }
  return absl::FailedPreconditionError(message);
}

void AddChatCommand(cli::Command& program) {
  cli::Command& command =
      program.AddCommand("chat", "a conversation in the terminal, by the model's chat template",
                         "Its flags follow `chat`; `tandem chat --help` lists them.");
  command.OnRun([] { return absl::InvalidArgumentError("`chat` comes first: tandem chat FLAGS"); });
}

}  // namespace tandem::client
