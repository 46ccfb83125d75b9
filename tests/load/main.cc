// tandem_load: loads a server as its users would and says what they would experience.
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/cli/command.h"
#include "coordinator/startup/stop_signal.h"
#include "tests/load/options.h"
#include "tests/load/result_file.h"
#include "tests/load/session.h"
#include "tests/load/target.h"

namespace tandem::load {
namespace {

constexpr char kProgram[] = "tandem_load";
constexpr int kInterrupted = 130;  // as after SIGINT

absl::Status CheckAll(const LoadOptions& options) {
  TANDEM_RETURN_IF_ERROR(options.Check());
  if (!options.save_result.empty()) {
    TANDEM_RETURN_IF_ERROR(CheckResultFile("--save-result", options.save_result));
  }
  return options.html.empty() ? absl::OkStatus() : CheckResultFile("--html", options.html);
}

std::string CommandLine(int argc, char** argv) {
  std::string line = kProgram;
  for (int i = 1; i < argc; ++i) absl::StrAppend(&line, " ", argv[i]);
  return line;
}

absl::Status RunSession(const LoadOptions& options, const std::string& command_line,
                        coordinator::StopSignal& signal, Target& target) {
  Session session(options, target, command_line, std::cout);
  std::thread stopper([&] {
    signal.Wait();
    target.Stop();
  });
  const absl::Status status = session.Run();
  signal.Raise();  // the end of the thread
  stopper.join();
  return status;
}

int Main(int argc, char** argv) {
  LoadOptions options;
  cli::Command program(
      kProgram,
      "tandem_load: sends requests to a server as its users would, and says what they would "
      "experience.\n"
      "Options and results are those of vLLM's serving benchmark where it has them.",
      "Examples:\n"
      "  tandem_load --random-input-len 128 --random-output-len 64 --request-rate 2 "
      "--num-prompts 100\n"
      "  tandem_load --max-concurrency 1,4,16 --num-prompts 64 --ignore-eos --html report.html\n"
      "  tandem_load --sweep --goodput ttft:500,tpot:50 --save-result sweep.jsonl\n"
      "  tandem_load --dataset-name replay --dataset-path trace.jsonl\n"
      "  tandem_load --backend openai --server 127.0.0.1:8000\n"
      "  tandem_load --simulate server.profile --simulate-with max-num-seqs=64 --sweep\n"
      "Exit status: 0: every request was completed, or cancelled by --cancel-fraction; 1: one "
      "failed,\n"
      "or the server was lost; 2: wrong flags; 130: interrupted. Runs that were made, also in "
      "part, "
      "are\n"
      "in the results in every case.");
  config::FieldList fields;
  options.ForEach(fields);
  program.Add(fields);
  program.OnlyOnCommandLine("--insecure");  // as of `tandem`: the variable is the server's
  absl::Status status = program.Parse({argv + 1, argv + argc});
  if (absl::IsCancelled(status)) return 0;  // --help
  if (absl::IsDataLoss(status)) {           // which could not be printed
    std::cerr << kProgram << ": " << status.message() << "\n";
    return cli::kFailed;
  }
  if (status.ok()) status = CheckAll(options);
  if (!status.ok()) {
    std::cerr << kProgram << ": " << status.message() << " (see " << kProgram << " --help)\n";
    return cli::kBadUsage;
  }
  coordinator::StopSignal signal;
  const auto target = options.simulate.empty() ? ConnectServer(options) : SimulateServer(options);
  if (!target.ok() && !options.simulate.empty()) {  // a file is as wrong as a flag
    std::cerr << kProgram << ": " << target.status().message() << "\n";
    return cli::kBadUsage;
  }
  status = target.ok() ? RunSession(options, CommandLine(argc, argv), signal, **target)
                       : target.status();
  if (status.ok()) return 0;
  std::cerr << kProgram << ": " << status.message() << "\n";
  return absl::IsCancelled(status) ? kInterrupted : cli::kFailed;
}

}  // namespace
}  // namespace tandem::load

int main(int argc, char** argv) { return tandem::load::Main(argc, argv); }
