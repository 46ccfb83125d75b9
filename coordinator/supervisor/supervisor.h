// Supervisor: owns the workers: their configuration, their processes and the epoch. Every
// Bring is a new epoch, with workers that kept running (and their weights) and with new ones in
// place of those that ended or are stuck.
//
// One thread at a time; any thread may call.
#ifndef TANDEM_COORDINATOR_SUPERVISOR_SUPERVISOR_H_
#define TANDEM_COORDINATOR_SUPERVISOR_SUPERVISOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"
#include "coordinator/cluster/cluster.h"
#include "coordinator/cluster/worker_group.h"

namespace tandem::coordinator {

// The per-rank parameters of an epoch, in rank order; `host_ids`: the host of each rank.
using AssignFn = std::function<std::vector<config::WorkerAssignment>(
    Epoch epoch, const std::vector<std::string>& host_ids)>;

struct SupervisorOptions {
  ClusterOptions cluster;
  config::WorkerConfig worker;
  AssignFn assign;
  Duration load_timeout = std::chrono::seconds(600);  // of a Bring
  // The most restarts by Recover within a window; more is a fault that restarts don't cure.
  int max_restarts = 0;
  Duration restart_window = std::chrono::minutes(10);
  // Before the second try in a row, doubled for each one after it up to most_pause: what is in the
  // way, such as a program that is being replaced, may take a moment to pass.
  Duration first_pause = std::chrono::milliseconds(500);
  Duration most_pause = std::chrono::seconds(30);
  const Clock* clock = &Clock::System();  // of these times; outlives the supervisor
  RankProgressFn on_progress = nullptr;   // may be null
  RankTimes* rank_times = nullptr;        // of all steps; may be null; outlives the groups
  TraceRecorder* trace = nullptr;         // the same
};

class Supervisor {
 public:
  // Opens the worker port and starts the workers.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(SupervisorOptions options);
  // On the workers of a cluster that was started by options.cluster.
  Supervisor(SupervisorOptions options, std::unique_ptr<Cluster> cluster);

  // Returns ready workers of the next epoch, with the KV blocks of the first one. External workers
  // may be lost and replaced meanwhile. REQUIRES: the previous epoch's group is destroyed. Errors
  // are one line for the operator and name the rank; `cancelled` is polled while waiting. After an
  // error the next Bring may succeed.
  absl::StatusOr<ReadyWorkers> Bring(const std::function<bool()>& cancelled);
  // Brings workers up again after a loss, in as many tries as max_restarts allows. CANCELLED when
  // `cancelled`; otherwise UNAVAILABLE with `cause`, or what stopped the last try.
  absl::StatusOr<ReadyWorkers> Recover(absl::Status cause, const std::function<bool()>& cancelled);

  // Asks every worker to exit, waits, kills the rest (Cluster::Shutdown).
  void Shutdown(const absl::Status& end, Deadline deadline) { cluster_->Shutdown(end, deadline); }

 private:
  absl::StatusOr<ReadyWorkers> BringEpoch(Deadline deadline,
                                          const std::function<bool()>& cancelled);
  // Whether Bring tries once more after `tries`, of which the last ended with `error`.
  bool TriesAgain(const absl::Status& error, bool first, int tries) const;
  // Waits before the try after `tries`. False if `cancelled`.
  bool Pause(int tries, const std::function<bool()>& cancelled) const;
  // Those from before the window. Only while workers compute: attempts of one recovery may each
  // take longer than the window, and all count.
  void ForgetOldRestarts();
  // Counts a restart, if one more is allowed.
  bool TakeRestart();

  const SupervisorOptions options_;
  const std::unique_ptr<Cluster> cluster_;
  Epoch epoch_;                       // of the last Bring
  std::vector<uint32_t> num_blocks_;  // of the first; empty before
  std::deque<TimePoint> restarts_;    // within the restart window, or of this recovery
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SUPERVISOR_SUPERVISOR_H_
