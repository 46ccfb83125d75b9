#include "coordinator/supervisor/supervisor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

// How often a pause looks whether it was cancelled.
constexpr auto kPoll = std::chrono::milliseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Start(SupervisorOptions options) {
  TANDEM_ASSIGN_OR_RETURN(auto cluster, Cluster::Start(options.cluster));
  return std::make_unique<Supervisor>(std::move(options), std::move(cluster));
}

Supervisor::Supervisor(SupervisorOptions options, std::unique_ptr<Cluster> cluster)
    : options_(std::move(options)), cluster_(std::move(cluster)) {
  cluster_->set_on_progress(options_.on_progress);
}

absl::StatusOr<ReadyWorkers> Supervisor::Bring(const std::function<bool()>& cancelled) {
  const auto deadline = Deadline::After(options_.load_timeout, *options_.clock);
  const bool first = epoch_.value == 0;
  for (int tries = 1;; ++tries) {
    absl::StatusOr<ReadyWorkers> ready = BringEpoch(deadline, cancelled);
    if (ready.ok() || deadline.Passed() || !TriesAgain(ready.status(), first, tries)) return ready;
    TANDEM_LOG(kWarning) << ready.status().message() << "; trying once more";
    // Workers that are stuck or gone are replaced at once; others come in their own time.
    if (tries > 1 && !Pause(tries - 1, cancelled)) {
      return absl::CancelledError("stopped while waiting for workers");
    }
  }
}

bool Supervisor::TriesAgain(const absl::Status& error, bool first, int tries) const {
  if (absl::IsCancelled(error)) return false;
  const bool lost = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error);
  // An external worker that was lost, or that failed and so gave its rank up, may be replaced by
  // another; but what fails at the first start is for the operator.
  if (options_.cluster.external) return !first || (lost && !cluster_->IsComplete());
  // A worker of the epoch before was stuck or ended at this one's beginning: now it can be
  // replaced.
  return lost && !first && tries == 1;
}

bool Supervisor::Pause(int tries, const std::function<bool()>& cancelled) const {
  Duration pause = options_.first_pause;
  for (int i = 1; i < tries && pause < options_.most_pause; ++i) pause *= 2;
  const Deadline end = Deadline::After(std::min(pause, options_.most_pause), *options_.clock);
  Mutex mutex;
  CondVar nothing;
  MutexLock lock(mutex);
  while (!end.Passed()) {
    if (cancelled && cancelled()) return false;
    nothing.Wait(lock, end.OrAfter(kPoll), [] { return false; });
  }
  return true;
}

absl::StatusOr<ReadyWorkers> Supervisor::Recover(absl::Status cause,
                                                 const std::function<bool()>& cancelled) {
  ForgetOldRestarts();
  for (int tries = 0; TakeRestart(); ++tries) {
    if (tries > 0 && !Pause(tries, cancelled)) return absl::CancelledError("stopped while waiting");
    TANDEM_LOG(kWarning) << cause.message() << "; restart " << restarts_.size() << " of "
                         << options_.max_restarts << " within "
                         << absl::FormatDuration(absl::FromChrono(options_.restart_window));
    absl::StatusOr<ReadyWorkers> ready = Bring(cancelled);
    if (ready.ok()) restarts_.back() = options_.clock->Now();  // however long it took
    if (ready.ok() || absl::IsCancelled(ready.status())) return ready;
    cause = ready.status();
  }
  if (options_.max_restarts == 0) return absl::UnavailableError(cause.message());
  return absl::UnavailableError(absl::StrCat(
      cause.message(), "; not restarted again: ", options_.max_restarts, " restarts within ",
      absl::FormatDuration(absl::FromChrono(options_.restart_window)), " are the most"));
}

void Supervisor::ForgetOldRestarts() {
  const TimePoint now = options_.clock->Now();
  while (!restarts_.empty() && now - restarts_.front() > options_.restart_window) {
    restarts_.pop_front();
  }
}

bool Supervisor::TakeRestart() {
  if (restarts_.size() >= static_cast<size_t>(options_.max_restarts)) return false;
  restarts_.push_back(options_.clock->Now());
  return true;
}

absl::StatusOr<ReadyWorkers> Supervisor::BringEpoch(Deadline deadline,
                                                    const std::function<bool()>& cancelled) {
  ReadyWorkers ready;
  ready.epoch = Epoch{++epoch_.value};
  cluster_->SetEpoch(ready.epoch);
  // The first epoch's workers have just been started: one that ended failed to start.
  if (ready.epoch.value > 1) TANDEM_RETURN_IF_ERROR(cluster_->Replace());
  if (options_.cluster.external) {
    TANDEM_LOG(kInfo) << "waiting for workers on " << cluster_->worker_address();
  }
  TANDEM_RETURN_IF_ERROR(cluster_->WaitConnected(deadline, cancelled));
  ready.group = std::make_unique<WorkerGroup>(cluster_->MakeClients());
  ready.group->set_times(options_.rank_times);
  ready.group->set_trace(options_.trace);
  TANDEM_ASSIGN_OR_RETURN(
      ready.num_blocks,
      ready.group->Bring(options_.worker, options_.assign(ready.epoch, cluster_->HostIds()),
                         deadline, num_blocks_, cancelled));
  num_blocks_ = ready.num_blocks;
  return ready;
}

}  // namespace tandem::coordinator
