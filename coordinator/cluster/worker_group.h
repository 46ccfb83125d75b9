// WorkerGroup: the N workers of one model as one executor of steps. Encodes a descriptor once and
// sends the bytes to all.
//
// Single-threaded (the engine thread). After an error the group is lost: its message names the rank
// at fault, which is the one that died or is silent rather than those that miss it.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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

  // Configure, load (all ranks at once) and start; returns the blocks per KV group (the minimum
  // over ranks). `ranks` has one entry per rank.
  absl::StatusOr<std::vector<uint32_t>> Bring(const config::WorkerConfig& config,
                                              const std::vector<config::WorkerAssignment>& ranks,
                                              Deadline deadline);
  // Broadcasts one step. UNAVAILABLE naming the rank that does not take it.
  absl::Status Submit(const step::StepDescriptor& step, Deadline deadline);
  // Waits for every rank's result of the oldest submitted step; checks step id, epoch and status;
  // returns rank 0's. UNAVAILABLE naming the rank at fault: one that died within a moment, one that
  // does not answer at the deadline.
  absl::StatusOr<step::StepResult> Collect(Deadline deadline);
  // The first unhealthy worker, or OK. Never blocks.
  absl::Status Health() const;
  void Abort(const absl::Status& reason);

 private:
  struct Answer {
    bool arrived = false;  // `fault` and `result` say the rest
    absl::Status fault;    // how the rank failed, with its name
    step::StepResult result;
  };
  struct SubmittedStep {
    StepId step_id;
    Epoch epoch;
  };

  using WaitForRank = std::function<absl::Status(size_t rank, Deadline slice)>;

  // Waits for an answer of every rank, a slice of time for each in turns: ranks wait for each
  // other, and the one that fails is the one to hear of. The first error that any answers with.
  absl::Status InTurns(Deadline deadline, const WaitForRank& wait) const;
  // Asks one rank for its result until `deadline`; leaves the answer as it is when there is none
  // yet.
  void Poll(size_t rank, const SubmittedStep& step, Deadline deadline, Answer& answer);
  absl::Status CheckResult(size_t rank, const SubmittedStep& step,
                           const step::StepResult& result) const;
  // Who is at fault, when at least one rank failed or did not answer.
  absl::Status Verdict(const SubmittedStep& step, const std::vector<Answer>& answers) const;

  std::vector<std::unique_ptr<WorkerClient>> workers_;
  std::vector<uint8_t> frame_;           // reused
  std::deque<SubmittedStep> in_flight_;  // oldest first
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_
