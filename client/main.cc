// tandem: the command line of Tandem, for a server and for model files.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "client/bench/bench_command.h"
#include "client/command.h"
#include "client/generate_command.h"
#include "client/info_command.h"
#include "client/stats_command.h"
#include "client/tokenize_command.h"
#include "client/wait_command.h"

namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

// An error is one line, also where a server's message has several.
std::string OneLine(std::string message) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return message;
}

int ReportUsage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help
  std::cerr << "tandem: " << OneLine(error.what()) << " (see tandem --help)\n";
  return kBadUsage;
}

}  // namespace

int main(int argc, char** argv) {
  namespace client = tandem::client;
  CLI::App app{"tandem: talks to a Tandem server, looks into model files, and measures them."};
  app.footer(
      "Examples:\n"
      "  tandem wait --timeout 60s && tandem generate --prompt 'Once upon a time'\n"
      "  tandem info models/demo.gguf\n"
      "  tandem bench --model models/demo.gguf --threads-per-worker 2\n"
      "`tandem COMMAND --help` has more.");
  app.require_subcommand(1);

  client::Action action;
  client::AddGenerateCommand(app, action);
  client::AddInfoCommand(app, action);
  client::AddTokenizeCommand(app, action);
  client::AddWaitCommand(app, action);
  client::AddStatsCommand(app, action);
  client::AddBenchCommand(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportUsage(app, error);
  }

  const absl::Status status = action();
  if (status.ok()) return 0;
  std::cout.flush();
  std::cerr << "tandem: " << OneLine(std::string(status.message())) << "\n";
  return kFailed;
}
