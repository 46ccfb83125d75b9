#include "worker/life/worker_main.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/token_file.h"
#include "kernels/factory.h"
#include "worker/life/control_stream.h"
#include "worker/life/worker_life.h"

namespace tandem::worker {
namespace {

constexpr auto kDialTimeout = std::chrono::seconds(60);

struct Flags {
  std::string coordinator;
  std::string rank = "auto";
  std::string token_file;
  WorkerOverrides overrides;
  int parent_pid = 0;
};

absl::StatusOr<std::optional<int>> ParseRank(const std::string& text) {
  if (text == "auto") return std::optional<int>();
  int rank = 0;
  if (absl::SimpleAtoi(text, &rank) && rank >= 0) return std::optional<int>(rank);
  return absl::InvalidArgumentError(
      absl::StrCat("--rank must be a number from 0 or auto, got '", text, "'"));
}

// A spawned worker must not outlive its coordinator, however that ends.
void DieWithParent(int parent_pid) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent_pid) _exit(1);  // it died before we asked
}

// "cpu-avx512, 16 cores", for people.
std::string CpuText() {
  const auto backend = kernels::MakeBackend({});
  return absl::StrCat(backend.ok() ? Sv((*backend)->name()) : "cpu", ", ",
                      std::thread::hardware_concurrency(), " cores");
}

absl::Status Serve(const Flags& flags, const std::function<std::string()>& devices) {
  if (flags.parent_pid > 0) DieWithParent(flags.parent_pid);
  Greeting greeting;
  TANDEM_ASSIGN_OR_RETURN(greeting.rank, ParseRank(flags.rank));
  TANDEM_ASSIGN_OR_RETURN(greeting.token, ReadTokenFile("--token-file", flags.token_file));
  greeting.host_id = HostId();
  if (devices) greeting.device = devices();
  if (greeting.device.empty()) greeting.device = CpuText();
  SetLogTag(absl::StrCat("rank ", flags.rank));
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<ControlStream> stream,
      ControlStream::Dial(flags.coordinator, greeting, Deadline::After(kDialTimeout)));
  WorkerLife life(*stream, flags.overrides);
  return life.Run();
}

}  // namespace

int WorkerMain(int argc, char** argv, const std::function<std::string()>& devices) {
  Flags flags;
  CLI::App app{
      "tandem_worker: one rank of a Tandem server. Usually started by tandem_coordinator."};
  app.footer(
      "Example, with the coordinator started with --workers external:\n"
      "  tandem_worker --coordinator 127.0.0.1:50052 --rank auto --token-file token\n");
  app.add_option("--coordinator", flags.coordinator, "HOST:PORT of the coordinator's worker port")
      ->required();
  app.add_option("--rank", flags.rank, "this worker's rank, or auto")->capture_default_str();
  app.add_option("--token-file", flags.token_file, "file with the shared worker token")->required();
  app.add_option("--model", flags.overrides.model, "path of the GGUF file here, if it differs");
  app.add_option("--device-index", flags.overrides.device_index,
                 "which of the devices that this process may see (default: the coordinator says)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--parent-pid", flags.parent_pid, "exit when this parent process does")->group("");
  CLI11_PARSE(app, argc, argv);

  // A coordinator that goes away shows as an error of the stream; Ctrl-C is the coordinator's to
  // handle.
  signal(SIGPIPE, SIG_IGN);
  const absl::Status status = Serve(flags, devices);
  if (status.ok()) return 0;
  std::cerr << "tandem_worker: " << status.message() << "\n";
  return 1;
}

}  // namespace tandem::worker
