// SimulatedWorker: a WorkerClient without a process, for tests and benchmarks. It decodes and
// validates every frame as a real worker does, keeps simulated KV pages, and computes
// SimulatedModel in Collect (so that Submit costs what sending costs). Faults are scripted by step
// number. Single-threaded, except Abort and Kill.
#ifndef TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_WORKER_H_
#define TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_WORKER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/worker_client.h"
#include "tests/coordinator/cluster/simulated_model.h"
#include "tests/coordinator/cluster/simulated_pages.h"

namespace tandem::coordinator {

enum class SimulatedFault {
  kDie,    // Collect is UNAVAILABLE, Health has the reason
  kHang,   // Collect waits in vain, on its deadline's clock; Health stays OK
  kDelay,  // the first `delay_polls` calls of Collect have no answer yet
  kWrongEpoch,
  kWrongStepId,
  kError,      // a result that carries a status
  kRefuse,     // Submit is UNAVAILABLE
  kBadToken,   // a sample outside the vocabulary
  kNoRows,     // a result without rows
  kNotFinite,  // of the first row: no finite logit
};

struct SimulatedScript {
  std::map<uint64_t, SimulatedFault>
      faults{};                     // by step number, counted from 1 over the worker's life
  std::optional<TokenId> poison{};  // a step that computes this token ends the worker
  bool ended_from_outside = false;
  int delay_polls = 3;
  bool fail_load = false;
  // Load: timed out waiting for others, or does not end; and whether a Ping is answered meanwhile.
  bool waits_in_vain = false;
  bool loads_for_ever = false;
  bool answers_pings = true;
  std::function<void()> on_collect{};  // runs first in every Collect, on its thread
  std::function<void()> on_abort{};    // runs in Abort
};

class SimulatedWorker : public WorkerClient {
 public:
  // `num_blocks` per KV group: what this rank can hold.
  SimulatedWorker(int rank, SimulatedModel model, std::vector<uint32_t> num_blocks,
                  SimulatedScript script = {});

  int rank() const override { return rank_; }
  absl::Status Configure(const config::WorkerConfig& config,
                         const config::WorkerAssignment& assignment) override;
  absl::Status StartLoad() override;
  absl::Status AwaitLoading(Deadline, Deadline, const std::function<bool()>&) override {
    return Health();
  }
  absl::StatusOr<WorkerReady> FinishLoad(Deadline deadline) override;
  absl::Status Start(const std::vector<uint32_t>& num_blocks) override;
  absl::Status FinishStart(Deadline deadline) override;
  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override;
  void Ping() override {}
  bool WaitPong(Deadline) override { return script_.answers_pings; }
  absl::Status Health() const override;
  void Abort(const absl::Status& reason) override;

  // From any thread: the worker "exits".
  bool EndedFromOutside() const override { return script_.ended_from_outside; }
  void Kill() override { dead_ = true; }
  uint64_t num_steps() const { return num_steps_; }

 private:
  absl::Status LostError() const;
  SimulatedFault* FaultOf(uint64_t step);
  step::StepResult Run(const std::vector<uint8_t>& frame);
  void Distort(SimulatedFault fault, step::StepResult& result) const;

  const int rank_;
  const SimulatedModel model_;
  const std::vector<uint32_t> can_hold_;
  SimulatedScript script_;
  config::WorkerConfig config_;
  config::WorkerAssignment assignment_;
  std::optional<SimulatedPages> pages_;  // from Start on
  std::deque<std::vector<uint8_t>> submitted_;
  uint64_t num_steps_ = 0;  // collected
  int polls_ = 0;           // of the step in flight
  std::mutex mutex_;
  std::condition_variable aborted_changed_;
  std::atomic<bool> dead_ = false;
  std::atomic<bool> aborted_ = false;
};

// One simulated worker per rank, all alike but for `scripts` (by rank, may be shorter).
std::vector<std::unique_ptr<WorkerClient>> MakeSimulatedWorkers(
    int size, const SimulatedModel& model, const std::vector<uint32_t>& num_blocks,
    const std::vector<SimulatedScript>& scripts = {});

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_WORKER_H_
