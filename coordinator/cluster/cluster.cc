#include "coordinator/cluster/cluster.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/worker_config.h"
#include "coordinator/cluster/process_worker_client.h"
#include "coordinator/process/secret_file.h"
#include "coordinator/process/spawner.h"

namespace tandem::coordinator {
namespace {

// How often the worker processes are polled while waiting for workers.
constexpr auto kPoll = std::chrono::milliseconds(50);
// Time for a killed process and its connection to end.
constexpr auto kReplaceTimeout = std::chrono::seconds(5);

// Starts worker processes on this machine, which connect to a port.
class LocalLauncher {
 public:
  static absl::StatusOr<std::shared_ptr<LocalLauncher>> Create(const ClusterOptions& options,
                                                               std::string address,
                                                               const std::string& token) {
    TANDEM_ASSIGN_OR_RETURN(auto token_file, SecretFile::Create(token));
    return std::make_shared<LocalLauncher>(options, std::move(address), std::move(token_file));
  }
  LocalLauncher(const ClusterOptions& options, std::string address,
                std::unique_ptr<SecretFile> token_file)
      : binary_(options.worker_binary),
        log_format_(options.log_format),
        address_(std::move(address)),
        token_file_(std::move(token_file)) {}

  absl::StatusOr<std::shared_ptr<ChildProcess>> Launch(size_t rank) {
    return spawner_.Spawn({binary_, "--coordinator", address_, "--rank", absl::StrCat(rank),
                           "--token-file", token_file_->path(), "--parent-pid",
                           absl::StrCat(getpid()), "--log-format", config::NameOf(log_format_)});
  }

 private:
  const std::string binary_;
  const LogFormat log_format_;
  const std::string address_;
  const std::unique_ptr<SecretFile> token_file_;
  Spawner spawner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const ClusterOptions& options) {
  const std::string token = options.worker_token.empty() ? DrawToken() : options.worker_token;
  TANDEM_ASSIGN_OR_RETURN(auto service, WorkerService::Start({.listen = options.worker_listen,
                                                              .token = token,
                                                              .tls = options.worker_tls,
                                                              .size = options.size,
                                                              .one_host = options.one_host}));
  LaunchFn launch;
  if (!options.external) {
    TANDEM_ASSIGN_OR_RETURN(auto launcher,
                            LocalLauncher::Create(options, service->address(), token));
    launch = [launcher](size_t rank) { return launcher->Launch(rank); };
  }
  TANDEM_ASSIGN_OR_RETURN(auto cluster, Over(service->registry(), std::move(launch)));
  cluster->service_ = std::move(service);
  return cluster;
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Over(WorkerRegistry& registry, LaunchFn launch,
                                                       const Clock& clock) {
  std::unique_ptr<Cluster> cluster(new Cluster(registry, std::move(launch), clock));
  if (cluster->launch_ == nullptr) return cluster;
  cluster->processes_.resize(registry.links().size());
  for (size_t rank = 0; rank < cluster->processes_.size(); ++rank) {
    TANDEM_RETURN_IF_ERROR(cluster->Spawn(rank));
  }
  return cluster;
}

absl::Status Cluster::Spawn(size_t rank) {
  TANDEM_ASSIGN_OR_RETURN(processes_[rank], launch_(rank));
  return absl::OkStatus();
}

absl::Status Cluster::Replace() {
  const std::vector<std::shared_ptr<WorkerLink>> links = registry_.links();
  for (size_t rank = 0; rank < links.size(); ++rank) {
    const absl::Status ended = Ended(rank, links[rank].get());
    if (ended.ok()) continue;
    const auto& before = rank < connected_.size() ? connected_[rank] : nullptr;
    TANDEM_LOG(kWarning) << "rank " << rank
                         << (before == nullptr ? ""
                                               : absl::StrCat(" (", before->ProcessName(), ")"))
                         << ": " << ended.message()
                         << (processes_.empty() ? ", waiting for another worker"
                                                : ", starting it again");
    if (!processes_.empty()) {
      processes_[rank]->Kill(SIGKILL);
      processes_[rank]->WaitExit(kReplaceTimeout);
    }
    // Another worker than ours may have taken the rank: it gives it up.
    if (links[rank] != nullptr) {
      links[rank]->AskToExit(absl::UnavailableError("its rank is started again"));
      if (!registry_.WaitReleased(*links[rank], Deadline::After(kReplaceTimeout, clock_))) {
        return absl::DeadlineExceededError(
            absl::StrCat("rank ", rank, " has ended, but not its control connection"));
      }
    }
    if (rank < connected_.size()) connected_[rank] = nullptr;
    if (!processes_.empty()) TANDEM_RETURN_IF_ERROR(Spawn(rank));
  }
  return absl::OkStatus();
}

absl::Status Cluster::Ended(size_t rank, const WorkerLink* link) const {
  if (!processes_.empty()) TANDEM_RETURN_IF_ERROR(processes_[rank]->Poll());
  if (link != nullptr) return link->status();
  // It has lost its connection, or has not sent Hello yet.
  const bool was_connected = rank < connected_.size() && connected_[rank] != nullptr;
  return was_connected ? connected_[rank]->status() : absl::OkStatus();
}

Cluster::~Cluster() {
  EndWorkers(absl::UnavailableError("the coordinator has failed"),
             Deadline::After(std::chrono::seconds(2), clock_));
}

absl::Status Cluster::FirstEnded() const {
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank]->IsStopped()) {
      TANDEM_LOG(kWarning) << "rank " << rank << " was stopped before it connected, killing it";
      processes_[rank]->Kill(SIGKILL);
      processes_[rank]->WaitExit(kReplaceTimeout);
    }
    absl::Status ended = processes_[rank]->Poll();
    if (!ended.ok()) return Annotate(ended, absl::StrCat("rank ", rank, " before it connected"));
  }
  return absl::OkStatus();
}

void Cluster::Report(const std::vector<std::shared_ptr<WorkerLink>>& links) const {
  if (!on_progress_) return;
  for (size_t rank = 0; rank < links.size(); ++rank) {
    using Stage = RankProgress::Stage;
    on_progress_(rank, {.stage = links[rank] == nullptr ? Stage::kMissing : Stage::kConnected});
  }
}

absl::Status Cluster::WaitConnected(Deadline deadline, const std::function<bool()>& cancelled) {
  while (true) {
    registry_.WaitAll(deadline.OrAfter(kPoll));
    auto links = registry_.links();
    Report(links);
    if (std::find(links.begin(), links.end(), nullptr) == links.end()) {
      connected_ = std::move(links);
      return absl::OkStatus();
    }
    TANDEM_RETURN_IF_ERROR(FirstEnded());
    if (cancelled && cancelled()) return absl::CancelledError("stopped while waiting for workers");
    if (deadline.Passed()) {
      return absl::DeadlineExceededError(absl::StrCat("workers that did not connect in time: rank ",
                                                      absl::StrJoin(registry_.Missing(), ", ")));
    }
  }
}

bool Cluster::IsComplete() const {
  return std::all_of(connected_.begin(), connected_.end(),
                     [](const auto& link) { return link != nullptr && link->status().ok(); });
}

std::vector<std::unique_ptr<WorkerClient>> Cluster::MakeClients() {
  std::vector<std::unique_ptr<WorkerClient>> clients;
  for (size_t rank = 0; rank < connected_.size(); ++rank) {
    clients.push_back(std::make_unique<ProcessWorkerClient>(
        static_cast<int>(rank), connected_[rank], processes_.empty() ? nullptr : processes_[rank],
        on_progress_));
  }
  return clients;
}

std::vector<std::string> Cluster::HostIds() const {
  std::vector<std::string> hosts;
  for (const auto& link : connected_) hosts.push_back(link->hello().host_id());
  return hosts;
}

void Cluster::Shutdown(const absl::Status& end, Deadline deadline) {
  EndWorkers(end, deadline);
  // External ones read it before the port closes.
  for (const auto& link : registry_.links()) {
    if (link != nullptr) registry_.WaitReleased(*link, deadline);
  }
}

void Cluster::EndWorkers(const absl::Status& end, Deadline deadline) {
  for (const auto& link : registry_.links()) {
    if (link != nullptr) link->AskToExit(end);
  }
  for (const auto& process : processes_) {
    if (process == nullptr || process->WaitExit(deadline.Left())) continue;
    TANDEM_LOG(kWarning) << "worker " << process->pid() << " does not exit, killing it";
    process->Kill(SIGKILL);
    process->WaitExit(std::chrono::seconds(2));
  }
  processes_.clear();
}

}  // namespace tandem::coordinator
