#include "coordinator/startup/http_gateway.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "coordinator/process/child_process.h"

namespace tandem::coordinator {
namespace {

constexpr auto kCheckTimeout = std::chrono::seconds(30);
constexpr Duration kPatience = std::chrono::seconds(10);
// A Stop is noticed within this time.
constexpr auto kSlice = std::chrono::milliseconds(50);
// How long a process may be silent, at first while it loads its packages. Counted in slices: while
// this process itself stood still, no sign could be read.
constexpr auto kSilence = std::chrono::seconds(10);
constexpr auto kFirstSilence = std::chrono::seconds(60);
// A sign of life.
constexpr char kLives = 'h';
constexpr auto kDrainTimeout = std::chrono::seconds(5);
constexpr Duration kFirstBackoff = std::chrono::milliseconds(500);
constexpr Duration kMaxBackoff = std::chrono::seconds(30);
// After as long a life an end is a new trouble, not the last one again.
constexpr auto kStable = std::chrono::seconds(60);

absl::StatusOr<std::string> Binary() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto binary = folder / "tandem_gateway";
  if (std::filesystem::exists(binary, error)) return binary.string();
  return absl::UnavailableError(
      absl::StrCat("--http-listen: there is no tandem_gateway in ", folder.string()));
}

// A process that only looks whether it could serve.
absl::Status Check(std::vector<std::string> argv) {
  argv.push_back("--check");
  TANDEM_ASSIGN_OR_RETURN(const auto process, ChildProcess::Spawn(argv));
  if (!process->WaitExit(kCheckTimeout)) {
    return absl::UnavailableError("--http-listen: tandem_gateway does not start");
  }
  if (process->Succeeded()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--http-listen: tandem_gateway ",
                                             process->Poll().message(), ", its reason is above"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpGateway>> HttpGateway::Start(
    const std::vector<std::string>& flags, std::function<void(bool)> on_up) {
  TANDEM_ASSIGN_OR_RETURN(std::string binary, Binary());
  std::vector<std::string> argv = {std::move(binary)};
  argv.insert(argv.end(), flags.begin(), flags.end());
  TANDEM_RETURN_IF_ERROR(Check(argv));
  TANDEM_ASSIGN_OR_RETURN(auto reports, ChildReports::Create());
  argv.insert(argv.end(),
              {"--parent-pid", absl::StrCat(getpid()), "--parent-reports-file", reports->path()});
  on_up(false);
  return std::unique_ptr<HttpGateway>(
      new HttpGateway(std::move(argv), std::move(reports), std::move(on_up)));
}

absl::Status HttpGateway::Wait(Stage stage, const std::function<bool()>& stopped) {
  if (gave_up_) return absl::OkStatus();
  if (!patience_.has_value()) patience_ = Deadline::After(kPatience);
  const bool came = reports_->Wait(static_cast<char>(stage), *patience_, stopped);
  if (came || stopped()) return absl::OkStatus();
  gave_up_ = true;
  return absl::DeadlineExceededError(absl::StrCat(
      "--http-listen: tandem_gateway does not ", stage == Stage::kListens ? "listen" : "serve",
      " after ", absl::FormatDuration(absl::FromChrono(kPatience)), " and is not waited for"));
}

HttpGateway::~HttpGateway() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

bool HttpGateway::stopped() {
  MutexLock lock(mutex_);
  return stopped_;
}

void HttpGateway::Run() {
  Duration backoff = kFirstBackoff;
  while (true) {
    const Deadline stable = Deadline::After(kStable);
    const absl::Status ended = RunOnce();
    on_up_(false);
    if (stopped()) return;
    if (stable.Passed()) backoff = kFirstBackoff;
    TANDEM_LOG(kWarning) << "tandem_gateway: " << ended.message() << "; it is started again in "
                         << absl::FormatDuration(absl::FromChrono(backoff));
    MutexLock lock(mutex_);
    const bool over = stop_.Wait(lock, Deadline::After(backoff),
                                 [&]() TANDEM_REQUIRES(mutex_) { return stopped_; });
    if (over) return;
    backoff = std::min(2 * backoff, kMaxBackoff);
  }
}

// What still runs is killed with its `process`.
absl::Status HttpGateway::RunOnce() {
  uint64_t num_signs = reports_->Count(kLives);  // of its predecessors
  TANDEM_ASSIGN_OR_RETURN(const auto process, ChildProcess::Spawn(argv_));
  Duration most_silence = kFirstSilence;
  Duration silence{};
  while (!process->WaitExit(kSlice)) {
    if (stopped()) {
      process->Kill(SIGTERM);
      process->WaitExit(kDrainTimeout);
      return absl::OkStatus();
    }
    silence += kSlice;
    if (const uint64_t now = reports_->Count(kLives); now != num_signs) {
      if (most_silence == kFirstSilence) on_up_(true);
      num_signs = now;
      silence = {};
      most_silence = kSilence;
    }
    if (silence >= most_silence) {
      return absl::DeadlineExceededError(
          absl::StrCat("it gave no sign of life for ",
                       absl::FormatDuration(absl::FromChrono(most_silence)), " and is killed"));
    }
  }
  return process->Poll();
}

}  // namespace tandem::coordinator
