// Pipeline: the steps in flight on the workers, oldest first, at most `depth`. Single-threaded (the
// engine thread). After an error the workers are lost, and only Drain may be called; after Drain
// only Resume.
#ifndef TANDEM_COORDINATOR_ENGINE_PIPELINE_H_
#define TANDEM_COORDINATOR_ENGINE_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/step/result.h"
#include "coordinator/cluster/worker_group.h"
#include "coordinator/engine/step.h"

namespace tandem::coordinator {

class Pipeline {
 public:
  struct Answer {
    Step step;
    step::StepResult result;
  };

  // `step_timeout` is for one step's result, from when the workers can start it, on `clock`, which
  // must outlive the pipeline.
  Pipeline(WorkerGroup workers, uint32_t depth, uint32_t vocab_size, uint32_t hidden_size,
           Duration step_timeout, const Clock& clock);

  bool empty() const { return in_flight_.empty(); }
  bool full() const { return in_flight_.size() >= depth_; }

  // REQUIRES: not full. UNAVAILABLE naming the rank that does not accept it.
  absl::Status Submit(Step step);
  // Waits for the oldest step; its result was checked against its request. REQUIRES: not empty.
  // UNAVAILABLE naming the rank at fault.
  absl::StatusOr<Answer> Collect();
  // Whether the workers are lost to something outside, which steps can't cause.
  bool EndedFromOutside() const { return workers_->EndedFromOutside(); }
  // Drops the steps in flight, and the workers, which are aborted with the reason.
  void Drain(const absl::Status& reason);
  // Continues on other workers.
  void Resume(WorkerGroup workers) { workers_.emplace(std::move(workers)); }
  // The workers' health, while no step is in flight. Never blocks.
  absl::Status Heartbeat();

 private:
  struct InFlight {
    Step step;
    Deadline deadline;
  };

  std::optional<WorkerGroup> workers_;  // none after Drain
  const uint32_t depth_;
  const uint32_t vocab_size_;
  const uint32_t hidden_size_;
  const Duration step_timeout_;
  const Clock& clock_;
  std::deque<InFlight> in_flight_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_PIPELINE_H_
