// PacedWorker: a WorkerClient that computes nothing, but takes as long for each step as StepCosts
// says, on the clock of the deadlines it is given: with EventClock no real time passes. Every token
// that it draws is 0. Steps wait for each other, as on a device. Single-threaded.
#ifndef TANDEM_COORDINATOR_SIMULATION_PACED_WORKER_H_
#define TANDEM_COORDINATOR_SIMULATION_PACED_WORKER_H_

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "coordinator/cluster/worker_client.h"
#include "coordinator/simulation/step_costs.h"

namespace tandem::coordinator {

class PacedWorker final : public WorkerClient {
 public:
  // `clock` must outlive the worker.
  PacedWorker(const StepMeasurements& measured, const Clock& clock)
      : costs_(measured), clock_(clock) {}

  int rank() const override { return 0; }
  absl::Status Configure(const config::WorkerConfig&, const config::WorkerAssignment&) override {
    return absl::OkStatus();
  }
  absl::Status StartLoad() override { return absl::OkStatus(); }
  absl::Status AwaitLoading(Deadline, Deadline, const std::function<bool()>&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<WorkerReady> FinishLoad(Deadline) override { return WorkerReady{}; }
  absl::Status Start(const std::vector<uint32_t>&) override { return absl::OkStatus(); }
  absl::Status FinishStart(Deadline) override { return absl::OkStatus(); }
  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override;
  void Ping() override {}
  bool WaitPong(Deadline) override { return true; }
  absl::Status Health() const override { return absl::OkStatus(); }
  void Kill() override {}
  void Abort(const absl::Status&) override {}

 private:
  struct InFlight {
    TimePoint done{};
    step::StepResult result{};
  };

  const StepCosts costs_;
  const Clock& clock_;
  TimePoint free_at_{};  // when the last step submitted is done
  std::deque<InFlight> in_flight_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SIMULATION_PACED_WORKER_H_
