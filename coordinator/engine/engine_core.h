// EngineCore: one step of the engine as a function: schedule -> build -> submit -> collect ->
// apply -> deliver. No thread and no lock: the same calls give the same steps, so tests and
// simulations drive it directly, on a clock of theirs, and EngineLoop wraps it.
//
// Up to EngineConfig::pipeline_depth steps are in flight: Step submits until the pipeline is full
// and settles the oldest.
//
// Single-threaded. Owns the workers, the KV cache and the generations; a generation's blocks are
// released before its stream's last update, unless the stream itself stopped it.
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
#include "common/base/clock.h"
#include "common/step/result.h"
#include "coordinator/cluster/worker_group.h"
#include "coordinator/engine/delivery.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/generation.h"
#include "coordinator/engine/pipeline.h"
#include "coordinator/engine/request.h"
#include "coordinator/engine/step.h"
#include "coordinator/engine/step_builder.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {

class EngineCore {
 public:
  // Takes all updates of a step.
  using DeliverFn = std::function<void(std::vector<Delivery>)>;

  // `config` is valid; `workers` are brought up with its epoch and block counts. `clock` is what
  // steps' deadlines are of; it must outlive the core.
  EngineCore(EngineConfig config, WorkerGroup workers, const Clock& clock = Clock::System());

  // Where updates go. Without this, straight to their streams, on the thread that runs the core.
  void set_deliver(DeliverFn deliver) { deliver_ = std::move(deliver); }

  // `request` has passed RequestCheck; `handle` rises from call to call and names the generation.
  void Add(Request request, RequestHandle handle);
  // Ends a generation with kCancelled; nothing when it is over already.
  void Cancel(RequestHandle handle);
  // Releases a generation whose stream has stopped it; nothing when it is over already.
  void Stop(RequestHandle handle);
  // Settles one step, if there is anything to do. UNAVAILABLE naming the rank when a worker is
  // lost; then only EndAll is left.
  absl::Status Step();
  // Ends every generation, oldest first.
  void EndAll(const absl::Status& status, FinishReason reason);

  bool idle() const { return scheduler_.idle() && pipeline_.empty(); }
  // The workers' health. Never blocks.
  absl::Status Health() const { return pipeline_.Health(); }
  // Gives up the steps in flight: the workers are lost.
  void AbortWorkers(const absl::Status& reason);

  const EngineConfig& config() const { return config_; }
  EngineStats Stats() const;
  const EngineStepTimings& timings() const { return timings_; }
  // Lists, slots, tables and every block. INTERNAL saying what does not agree.
  absl::Status CheckIntegrity() const;

 private:
  // Submits steps until the pipeline is full or nothing more can run.
  absl::Status FillPipeline();
  // The step's tokens and log-probabilities go to their generations, and to deliveries_.
  void Apply(const coordinator::Step& step, const step::StepResult& result);
  // Puts an update among the next deliveries, with the usage; after the last one the generation is
  // gone.
  void Send(const Generation& generation, StreamUpdate update);
  void Deliver();
  void Leave(RequestHandle handle);  // takes a generation out and releases its blocks

  const EngineConfig config_;
  Pipeline pipeline_;
  BlockManager kv_;
  Scheduler scheduler_;
  StepBuilder builder_;
  absl::flat_hash_map<RequestHandle, std::shared_ptr<Generation>> generations_;
  // Generations that ended while steps in flight name them, until those settle.
  std::vector<std::shared_ptr<Generation>> leaving_;
  DeliverFn deliver_;
  std::vector<Delivery> deliveries_;         // not handed over yet
  std::vector<step::StepDescriptor> spare_;  // memory of settled steps, for the next ones
  uint64_t last_step_ = 0;
  EngineStepTimings timings_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_CORE_H_
