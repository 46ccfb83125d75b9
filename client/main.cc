// tandem: the command line of Tandem, for a server and for model files.
#include <iostream>

#include "absl/status/status.h"
#include "client/chat_command.h"
#include "client/commands.h"
#include "common/cli/command.h"
#include "common/rpc/library_log.h"

int main(int argc, char** argv) {
  namespace client = tandem::client;
  if (client::IsChat(argc, argv)) {
    const absl::Status failed = client::BecomeChat(argv);
    std::cerr << "tandem: " << failed.message() << "\n";
    return tandem::cli::kFailed;
  }
  tandem::cli::Command program(
      "tandem", "tandem: talks to a Tandem server, looks into model files, and measures them.",
      "Examples:\n"
      "  tandem wait --timeout 60s && tandem generate --prompt 'Once upon a time'\n"
      "  tandem info models/demo.gguf\n"
      "  tandem bench --model models/demo.gguf --threads-per-worker 2\n"
      "`tandem COMMAND --help` has more.");
  client::AddGenerateCommand(program);
  client::AddChatCommand(program);
  client::AddScoreCommand(program);
  client::AddEmbedCommand(program);
  client::AddInfoCommand(program);
  client::AddPullCommand(program);
  client::AddTokenizeCommand(program);
  client::AddDetokenizeCommand(program);
  client::AddWaitCommand(program);
  client::AddStatsCommand(program);
  client::AddResetCacheCommand(program);
  client::AddTraceCommand(program);
  client::AddBenchCommand(program);
  client::AddProfileCommand(program);
  tandem::RouteLibraryLogs();
  return program.Main(argc, argv);
}
