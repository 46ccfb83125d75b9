// EngineCore: one step of the engine as a function: schedule -> build -> submit -> collect ->
// apply. No thread, no lock, no clock that decides anything: the same calls give the same steps, so
// tests and simulations drive it directly and EngineLoop wraps it.
//
// Single-threaded. Owns the worker group, the KV cache and the generations; a generation's stream
// hears of its end after its blocks are free.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_CORE_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/step/result.h"
#include "coordinator/cluster/worker_group.h"
#include "coordinator/engine/delivery.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/generation.h"
#include "coordinator/engine/request.h"
#include "coordinator/engine/step_builder.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {

class EngineCore {
 public:
  // Told of each generation that leaves, after its blocks are free and before its stream hears of
  // it.
  using LeaveFn = std::function<void(const Generation&)>;

  // `config` is valid; `workers` are brought up with its epoch and block counts.
  EngineCore(EngineConfig config, WorkerGroup workers);

  void set_on_leave(LeaveFn on_leave) { on_leave_ = std::move(on_leave); }

  // `request` has passed RequestCheck; `arrival` rises from call to call and names the generation.
  void Add(Request request, uint64_t arrival);
  // Ends a generation with OnEnd(kCancelled); nothing when it is over already.
  void Cancel(uint64_t arrival);
  // Runs one step, if there is anything to do. UNAVAILABLE naming the rank when a worker is lost;
  // then only EndAll is left.
  absl::Status Step();
  // Ends every generation, oldest first.
  void EndAll(const absl::Status& status, FinishReason reason);

  bool idle() const { return scheduler_.idle(); }
  // The workers' health. Never blocks.
  absl::Status Health() const { return workers_.Health(); }
  void AbortWorkers(const absl::Status& reason) { workers_.Abort(reason); }

  const EngineConfig& config() const { return config_; }
  EngineStats Stats() const;
  const EngineStepTimings& timings() const { return timings_; }
  // Lists, slots, tables and every block. INTERNAL saying what does not agree.
  absl::Status CheckIntegrity() const;

 private:
  void Apply(const Plan& plan, const step::StepDescriptor& step, step::StepResult result);
  void ApplyRow(const step::RowRequest& wanted, step::RowResult row, Generation& generation,
                Delivery& delivery);
  void Deliver();
  // Hands one delivery to its generation, which may have left.
  void DeliverTo(Delivery& delivery);
  // Takes a generation out, with its blocks, and hands it to the caller for the last word to its
  // stream.
  std::unique_ptr<Generation> Leave(uint64_t arrival);

  const EngineConfig config_;
  WorkerGroup workers_;
  BlockManager kv_;
  Scheduler scheduler_;
  StepBuilder builder_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Generation>> generations_;  // by arrival
  LeaveFn on_leave_;
  std::vector<Delivery> deliveries_;  // of the step being applied
  uint64_t last_step_ = 0;
  EngineStepTimings timings_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_CORE_H_
