// Supervisor: owns the workers: their configuration, their processes and the epoch. Every
// Bring is a new epoch, with workers that kept running (and their weights) and with new ones in
// place of those that ended or are stuck.
//
// One thread at a time; any thread may call.
#ifndef TANDEM_COORDINATOR_SUPERVISOR_SUPERVISOR_H_
#define TANDEM_COORDINATOR_SUPERVISOR_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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
  const Clock* clock = &Clock::System();              // of load_timeout; outlives the supervisor
};

// Workers ready for the steps of one epoch.
struct ReadyWorkers {
  Epoch epoch;
  std::unique_ptr<WorkerGroup> group;
  std::vector<uint32_t> num_blocks;  // per KV group: the minimum over ranks
};

class Supervisor {
 public:
  // Opens the worker port and starts the workers.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(SupervisorOptions options);

  // Returns ready workers of the next epoch. REQUIRES: the previous epoch's group is destroyed.
  // Errors are one line for the operator and name the rank; `cancelled` is polled while waiting.
  // After an error the next Bring may succeed.
  absl::StatusOr<ReadyWorkers> Bring(const std::function<bool()>& cancelled);

  // Asks every worker to exit, waits, kills the rest.
  void Shutdown(const std::string& reason, Deadline deadline) {
    cluster_->Shutdown(reason, deadline);
  }

 private:
  absl::StatusOr<ReadyWorkers> BringEpoch(Deadline deadline,
                                          const std::function<bool()>& cancelled);
  explicit Supervisor(SupervisorOptions options) : options_(std::move(options)) {}

  const SupervisorOptions options_;
  std::unique_ptr<Cluster> cluster_;
  Epoch epoch_;  // of the last Bring
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SUPERVISOR_SUPERVISOR_H_
