// Invariants: what holds after every event of a run, besides what clients and workers check.
#ifndef TANDEM_TESTS_SIM_INVARIANTS_H_
#define TANDEM_TESTS_SIM_INVARIANTS_H_

#include <deque>

#include "coordinator/engine/engine_core.h"
#include "tests/sim/fleet.h"
#include "tests/sim/workload.h"

namespace tandem::sim {

class Invariants {
 public:
  // `engine` runs `core`; all outlive this.
  Invariants(const Worker::Host& host, const Fleet& fleet, const Workload& workload,
             const coordinator::EngineCore& core, const coordinator::EngineLoop& engine)
      : host_(host), fleet_(fleet), workload_(workload), core_(core), engine_(engine) {}

  void Check();
  // A loss: something must have happened to the workers since the one before.
  void CheckLoss(const absl::Status& loss);
  void BeginRecovery() { recovering_ = true; }
  // With success: the workers' epoch is another one now.
  void EndRecovery(bool succeeded);
  // After the end of the run.
  void CheckEnd() const;

 private:
  // Every block is accounted for, every rank is held once, the queue is bounded.
  void CheckAccounts() const;
  // A worker that does not run is noticed.
  void CheckNotice();
  // The oldest request makes progress, a cancelled one ends.
  void CheckProgress();

  const Worker::Host host_;
  const Fleet& fleet_;
  const Workload& workload_;
  const coordinator::EngineCore& core_;
  const coordinator::EngineLoop& engine_;
  bool recovering_ = false;
  TimePoint last_loss_{};
  std::deque<TimePoint> restarts_;  // within the window
  int64_t checked_steps_ = -1;
  TimePoint checked_at_{};
  TimePoint broken_since_ = TimePoint::max();
  coordinator::RequestHandle oldest_ = 0;
  size_t oldest_tokens_ = 0;
  int64_t oldest_since_ = 0;  // steps
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_INVARIANTS_H_
