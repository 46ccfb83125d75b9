// Cluster: starts N workers or waits for external ones, replaces those that ended, and shuts them
// down.
//
// One thread at a time; it may differ from call to call (Spawner).
#ifndef TANDEM_COORDINATOR_CLUSTER_CLUSTER_H_
#define TANDEM_COORDINATOR_CLUSTER_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/tls/tls_files.h"
#include "coordinator/cluster/rank_progress.h"
#include "coordinator/cluster/worker_client.h"
#include "coordinator/cluster/worker_registry.h"
#include "coordinator/cluster/worker_service.h"
#include "coordinator/process/child_process.h"

namespace tandem::coordinator {

struct ClusterOptions {
  int size = 1;
  bool external = false;  // workers are started elsewhere and connect
  std::string worker_listen = "127.0.0.1:0";
  TlsFiles worker_tls{};                    // of the worker port; empty: plain text
  std::string worker_token;                 // empty: random (spawned workers only)
  std::string worker_binary;                // spawned workers: path of tandem_worker
  bool one_host = true;                     // as WorkerService::Options
  LogFormat log_format = LogFormat::kText;  // of spawned workers
};

class Cluster {
 public:
  // Starts the process of a rank.
  using LaunchFn = std::function<absl::StatusOr<std::shared_ptr<ChildProcess>>(size_t rank)>;

  // Opens the worker port and starts the workers. WaitConnected waits for their Hello.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const ClusterOptions& options);
  // The same for workers that connect to `registry`, one for each of its ranks, started by `launch`
  // (null: elsewhere). Waits are on `clock`.
  static absl::StatusOr<std::unique_ptr<Cluster>> Over(WorkerRegistry& registry, LaunchFn launch,
                                                       const Clock& clock = Clock::System());
  // As Shutdown after an error, with a short deadline, which external workers are not given.
  ~Cluster();

  // Sets who learns how far the ranks are: from WaitConnected, and from the clients made later.
  void set_on_progress(RankProgressFn on_progress) { on_progress_ = std::move(on_progress); }

  // The address that workers connect to.
  std::string worker_address() const { return service_ == nullptr ? "" : service_->address(); }
  // Restarts workers that ended or lost their connection, logs it, and frees their ranks; external
  // ones must reconnect. Call WaitConnected next.
  absl::Status Replace();
  // Waits for every rank's Hello; a process of ours that is stopped meanwhile is killed. Errors
  // name the ranks that are missing or how a spawned one ended. `cancelled` is polled (SIGTERM
  // while waiting).
  absl::Status WaitConnected(Deadline deadline, const std::function<bool()>& cancelled);
  // Whether the workers that the last WaitConnected found are all still connected.
  bool IsComplete() const;
  // One client per rank, in order. The cluster must outlive them.
  std::vector<std::unique_ptr<WorkerClient>> MakeClients();
  // The host that each rank runs on, in rank order. REQUIRES: WaitConnected succeeded.
  std::vector<std::string> HostIds() const;
  // Opens the rendezvous for an epoch.
  void SetEpoch(Epoch epoch) { registry_.rendezvous().SetEpoch(epoch); }

  // Asks every worker to exit, waits, kills the rest. `end`: of the coordinator; unless it is OK
  // the workers' exit codes say so, too. Idempotent.
  void Shutdown(const absl::Status& end, Deadline deadline);

 private:
  Cluster(WorkerRegistry& registry, LaunchFn launch, const Clock& clock)
      : clock_(clock), registry_(registry), launch_(std::move(launch)) {}
  absl::Status Spawn(size_t rank);
  // Asks every worker to exit, and ends the processes of ours.
  void EndWorkers(const absl::Status& end, Deadline deadline);
  absl::Status FirstEnded() const;
  // Which ranks are connected.
  void Report(const std::vector<std::shared_ptr<WorkerLink>>& links) const;
  // How the rank's worker ended or lost its connection (`link`, null for none); OK if it is
  // running.
  absl::Status Ended(size_t rank, const WorkerLink* link) const;

  const Clock& clock_;
  std::unique_ptr<WorkerService> service_;  // the registry's port; null if that is elsewhere
  WorkerRegistry& registry_;
  RankProgressFn on_progress_;  // may be null
  const LaunchFn launch_;       // outlives the processes; null with external workers
  std::vector<std::shared_ptr<ChildProcess>> processes_;  // empty with external workers
  std::vector<std::shared_ptr<WorkerLink>>
      connected_;  // by the last WaitConnected; null: restarted since
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_CLUSTER_H_
