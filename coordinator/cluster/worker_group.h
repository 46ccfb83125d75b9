// WorkerGroup: the N workers of one model as one executor of steps. Encodes a descriptor once and sends the bytes to all.
//
// Single-threaded (the engine thread). After an error the group is lost: Lost() names the rank.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "coordinator/cluster/worker_client.h"

namespace tandem::coordinator {

class WorkerGroup {
 public:
  explicit WorkerGroup(std::vector<std::unique_ptr<WorkerClient>> workers)
      : workers_(std::move(workers)) {}

  int size() const { return static_cast<int>(workers_.size()); }

  // Configure, load (all ranks at once) and start; returns the blocks per KV group (the minimum over ranks).
  // `configs` has one entry per rank.
  absl::StatusOr<std::vector<uint32_t>> Bring(const std::vector<WorkerConfig>& configs,
                                              Deadline deadline);
  // Broadcasts one step.
  absl::Status Submit(const step::StepDescriptor& step, Deadline deadline);
  // Waits for every rank's result of the oldest submitted step; checks step id, epoch and status; returns rank 0's.
  absl::StatusOr<step::StepResult> Collect(Deadline deadline);
  // The first unhealthy worker, or OK. Never blocks.
  absl::Status Health() const;
  void Abort(const absl::Status& reason);

 private:
  std::vector<std::unique_ptr<WorkerClient>> workers_;
  std::vector<uint8_t> frame_;  // reused
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_
