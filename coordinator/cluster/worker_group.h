// WorkerGroup: the N workers of one model as one executor of steps. Serializes a descriptor once
// and sends the bytes to all.
//
// Single-threaded (the engine thread). After an error the group is lost: its message names the rank
// at fault: the one that died or does not respond, not those waiting for it.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "coordinator/cluster/rank_times.h"
#include "coordinator/cluster/worker_client.h"
#include "coordinator/observe/trace_recorder.h"

namespace tandem::coordinator {

class WorkerGroup {
 public:
  explicit WorkerGroup(std::vector<std::unique_ptr<WorkerClient>> workers)
      : workers_(std::move(workers)) {}

  // Sets what learns each rank's times, if it is not null; it must outlive the group.
  void set_times(RankTimes* times) { times_ = times; }

  // Sets what records each rank's part of steps, if it is not null; it must outlive the group.
  void set_trace(TraceRecorder* recorder) { recorder_ = recorder; }

  int size() const { return static_cast<int>(workers_.size()); }

  // Configure, load (all ranks at once) and start; returns the blocks per KV group: `num_blocks` if
  // it is not empty (RESOURCE_EXHAUSTED if a rank can hold fewer), else the minimum over ranks.
  // `ranks` has one entry per rank. A rank that does not take Load within the step timeout is
  // stuck, as one that does not answer a step is. `cancelled` is polled; CANCELLED then.
  absl::StatusOr<std::vector<uint32_t>> Bring(const config::WorkerConfig& config,
                                              const std::vector<config::WorkerAssignment>& ranks,
                                              Deadline deadline,
                                              std::vector<uint32_t> num_blocks = {},
                                              const std::function<bool()>& cancelled = nullptr);
  // Broadcasts one step. UNAVAILABLE naming the rank that does not accept it.
  absl::Status Submit(const step::StepDescriptor& step, Deadline deadline);
  // Waits for every rank's result of the oldest submitted step; checks step id, epoch and status;
  // returns rank 0's. UNAVAILABLE naming the rank at fault: shortly after a death, or at the
  // deadline if it does not respond; then it is killed.
  absl::StatusOr<step::StepResult> Collect(Deadline deadline);
  // The first unhealthy worker, or OK. Never blocks.
  absl::Status Health() const;
  // Whether a worker was lost to something outside, such as the kernel short of memory, and not to
  // what it computed. Meaningful after an error of Submit or Collect.
  bool EndedFromOutside() const;
  // Health, and signs of life while no step is in flight: pings the ranks every now and then.
  // UNAVAILABLE naming those that have not answered for `silence`; then they are killed. Never
  // blocks.
  absl::Status Heartbeat(Duration silence, const Clock& clock);
  void Abort(const absl::Status& reason);

 private:
  struct Answer {
    bool arrived = false;  // then `fault` and `result` are set
    absl::Status fault;    // how the rank failed, with its name
    step::StepResult result;
  };
  struct SubmittedStep {
    StepId step_id;
    Epoch epoch;
  };

  using WaitForRank = std::function<absl::Status(size_t rank, Deadline slice)>;

  // Polls all ranks for their results in time slices: ranks wait for each other, so the failing one
  // must not be found last. Returns the first error of any rank, or names the rank at fault.
  absl::Status InTurns(Deadline deadline, const std::function<bool()>& cancelled,
                       const WaitForRank& wait) const;
  // `first`, of a rank that waited for others in vain, with what those of `others` say that did,
  // too: each knows its own half of what is between them. Or the error of one that has failed.
  absl::Status WithOthers(const absl::Status& first, const std::vector<size_t>& others,
                          const WaitForRank& wait, const Clock& clock) const;
  // UNAVAILABLE naming the ranks of `pending` that show no sign of life, which are killed, after
  // one of them timed out waiting for others or the deadline passed (`failed`).
  absl::Status AtFault(const std::vector<size_t>& pending, const absl::Status& failed,
                       const Clock& clock) const;
  // Polls one rank for its result until `deadline`; leaves the answer unchanged if there is none
  // yet.
  void Poll(size_t rank, const SubmittedStep& step, Deadline deadline, Answer& answer);
  // Counts and records what a rank says that it spent on a step.
  void NoteTimings(size_t rank, const SubmittedStep& step, const step::StepTimings& timings);
  absl::Status CheckResult(size_t rank, const SubmittedStep& step,
                           const step::StepResult& result) const;
  // The rank at fault, if at least one rank failed or did not respond. Kills those that did not.
  absl::Status Verdict(const SubmittedStep& step, const std::vector<Answer>& answers) const;

  std::vector<std::unique_ptr<WorkerClient>> workers_;
  RankTimes* times_ = nullptr;
  TraceRecorder* recorder_ = nullptr;
  std::vector<uint8_t> frame_;           // reused
  std::deque<SubmittedStep> in_flight_;  // oldest first
  std::optional<TimePoint> pinged_at_;   // last
  TimePoint looked_at_{};                // by the last Heartbeat
};

// Workers ready for the steps of one epoch.
struct ReadyWorkers {
  Epoch epoch;
  std::unique_ptr<WorkerGroup> group;
  std::vector<uint32_t> num_blocks;  // per KV group: what every rank can hold
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_GROUP_H_
