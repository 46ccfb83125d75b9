#include "worker/control/worker_main.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/token_file.h"
#include "common/cli/command.h"
#include "common/rpc/library_log.h"
#include "kernels/factory.h"
#include "worker/control/control_stream.h"
#include "worker/control/worker_loop.h"

namespace tandem::worker {
namespace {

constexpr auto kDialTimeout = std::chrono::seconds(60);
// A rank that is taken is asked for again.
constexpr auto kAskAgain = std::chrono::seconds(1);

struct Flags {
  std::string coordinator;
  std::string rank = "auto";
  std::string token_file;
  TlsFiles tls;
  WorkerOverrides overrides;
  int parent_pid = 0;
  LogFormat log_format = LogFormat::kText;
};

absl::StatusOr<std::optional<int>> ParseRank(const std::string& text) {
  if (text == "auto") return std::optional<int>();
  int rank = 0;
  if (absl::SimpleAtoi(text, &rank) && rank >= 0) return std::optional<int>(rank);
  return absl::InvalidArgumentError(
      absl::StrCat("--rank must be a number from 0 or auto, got '", text, "'"));
}

// A spawned worker must not outlive its coordinator, even after a crash.
void DieWithParent(int parent_pid) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent_pid) _exit(1);  // it died before prctl
}

// "cpu-avx512, 16 cores", for display.
std::string CpuText() {
  const auto backend = kernels::MakeBackend({.threads = 1});
  return absl::StrCat(backend.ok() ? Sv((*backend)->name()) : "cpu", ", ",
                      std::thread::hardware_concurrency(), " cores");
}

absl::Status Serve(const Flags& flags, const std::function<std::string()>& devices) {
  if (flags.parent_pid > 0) DieWithParent(flags.parent_pid);
  Greeting greeting;
  TANDEM_ASSIGN_OR_RETURN(greeting.rank, ParseRank(flags.rank));
  TANDEM_ASSIGN_OR_RETURN(greeting.token, ReadTokenFile("--token-file", flags.token_file));
  greeting.host_id = HostId();
  greeting.host_name = HostName();
  if (devices) greeting.device = devices();
  if (greeting.device.empty()) greeting.device = CpuText();
  SetLogTag(absl::StrCat("rank ", flags.rank));
  SetLogFormat(flags.log_format);
  WorkerOverrides overrides = flags.overrides;
  // A spawned worker has the coordinator's environment, whose TANDEM_MODEL may be a name that only
  // the coordinator resolves.
  if (flags.parent_pid > 0) overrides.model = overrides.draft_model = "";
  overrides.external = flags.parent_pid == 0;
  const Deadline deadline = Deadline::After(kDialTimeout);
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<ControlStream> stream,
                            ControlStream::Dial(flags.coordinator, greeting, deadline, flags.tls));
    const absl::Status end = ServeCommands(std::move(stream), overrides);
    // The rank may still belong to a worker whose connection was cut; the coordinator learns later.
    if (!absl::IsAlreadyExists(end) || !overrides.external || deadline.Passed()) return end;
    TANDEM_LOG(kInfo) << end.message() << "; asking again in "
                      << absl::FormatDuration(absl::FromChrono(kAskAgain));
    std::this_thread::sleep_for(kAskAgain);
  }
}

// The token goes to other machines only by TLS, and only to a coordinator that has shown who it is.
absl::Status CheckTls(const Flags& flags) {
  const TlsFiles& tls = flags.tls;
  const bool all = !tls.cert.empty() && !tls.key.empty() && !tls.ca.empty();
  if (all || (tls.empty() && IsLoopback(flags.coordinator))) return absl::OkStatus();
  if (!tls.empty()) {
    return absl::InvalidArgumentError(
        "--worker-tls-cert, --worker-tls-key and --worker-tls-ca are given together");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--coordinator ", flags.coordinator,
                   " is on another machine: it needs --worker-tls-cert, --worker-tls-key and "
                   "--worker-tls-ca"));
}

}  // namespace

absl::Status ServeCommands(std::unique_ptr<ControlStream> stream, WorkerOverrides overrides) {
  auto loop = std::make_unique<WorkerLoop>(*stream, std::move(overrides));
  absl::Status end = loop->Run();
  const absl::Status device = loop->CheckDevice();
  if (device.ok()) return end;
  TANDEM_LOG(kError) << device.message() << ": leaving without freeing its memory";
  stream->OnEpochEnded(nullptr);
  (void)loop.release();
  stream = nullptr;
  _exit(1);  // exit would call the device's driver
}

int WorkerMain(int argc, char** argv, const std::function<std::string()>& devices) {
  RouteLibraryLogs();
  Flags flags;
  cli::Command command(
      "tandem_worker",
      "tandem_worker: one rank of a Tandem server. Usually started by tandem_coordinator.",
      "Example, with the coordinator started with --workers external:\n"
      "  tandem_worker --coordinator 127.0.0.1:50052 --rank auto --token-file token\n");
  command.Add({flags.coordinator,
               {.flag = "--coordinator",
                .help = "HOST:PORT of the coordinator's worker port",
                .required = true}});
  command.Add({flags.rank, {.flag = "--rank", .help = "this worker's rank, or auto"}});
  command.Add(
      {flags.token_file,
       {.flag = "--token-file", .help = "file with the shared worker token", .required = true}});
  command.Add({flags.tls.cert,
               {.flag = "--worker-tls-cert",
                .help = "PEM file with this worker's certificate chain, of the name tandem-worker "
                        "or tandem-worker-RANK"}});
  command.Add({flags.tls.key, {.flag = "--worker-tls-key", .help = "PEM file with its key"}});
  command.Add({flags.tls.ca,
               {.flag = "--worker-tls-ca",
                .help = "PEM file with the authorities of the coordinator's certificate, which is "
                        "of the name tandem-coordinator"}});
  command.Add({flags.overrides.model,
               {.flag = "--model", .help = "path of the GGUF file here, if it differs"}});
  command.Add({flags.overrides.draft_model,
               {.flag = "--draft-model",
                .help = "path of the draft model's GGUF file here, if it differs"}});
  command.Add({flags.overrides.device_index,
               {.flag = "--device-index",
                .help = "which of the devices that this process may see (default: the coordinator "
                        "says)",
                .most = 1 << 16}});
  command.Add({flags.overrides.collective_listen,
               {.flag = "--collective-listen",
                .help = "HOST:PORT where CPU ranks of other hosts connect to this one (default: "
                        "all addresses, a free port)"}});
  command.Add({flags.log_format, {.flag = "--log-format", .help = "lines of text, or of JSON"}});
  command.AddHidden(
      {flags.parent_pid, {.flag = "--parent-pid", .help = "exit when this parent process does"}});
  command.OnCheck(
      [&] { return Annotate(ParseHostPort(flags.coordinator).status(), "--coordinator"); });
  command.OnCheck([&] { return ParseRank(flags.rank).status(); });
  command.OnCheck([&] {
    const std::string& listen = flags.overrides.collective_listen;
    return listen.empty() ? absl::OkStatus()
                          : Annotate(ParseHostPort(listen).status(), "--collective-listen");
  });
  command.OnCheck([&] { return CheckTls(flags); });
  command.OnRun([&] { return Serve(flags, devices); });
  return command.Main(argc, argv);
}

}  // namespace tandem::worker
