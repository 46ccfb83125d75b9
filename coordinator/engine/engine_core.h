// EngineCore: one step of the engine as a function: schedule -> build -> submit -> collect ->
// apply -> deliver. No thread and no lock: the same calls give the same steps, so tests and
// simulations call it directly, with their own clock, and EngineLoop wraps it.
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
#include <set>
#include <span>
#include <string>
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
#include "coordinator/engine/step_tracer.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/scheduler/scheduler.h"
#include "coordinator/speculation/draft_record.h"

namespace tandem::coordinator {

class EngineCore {
 public:
  // Receives all updates of a step.
  using DeliverFn = std::function<void(std::vector<Delivery>)>;

  // `config` is valid; `workers` run with its epoch and block counts. `clock` is for steps'
  // and requests' deadlines and must outlive the core.
  EngineCore(EngineConfig config, WorkerGroup workers, const Clock& clock = Clock::System());

  // Sets the receiver of updates. Default: their streams, on the thread that runs the core.
  void set_deliver(DeliverFn deliver) { deliver_ = std::move(deliver); }

  // Says what may be wrong with the model, such as a file that was changed; empty: nothing is
  // known. Called when logits are not finite.
  using ExplainFn = std::function<std::string()>;
  void set_explain(ExplainFn explain) { explain_ = std::move(explain); }

  // Sets what records the engine's steps and requests; it must outlive the core.
  void set_trace(TraceRecorder* recorder) { tracer_.set_recorder(recorder); }

  // `request` has passed RequestCheck; `handle` increases from call to call and identifies the
  // generation.
  void Add(Request request, RequestHandle handle);
  // Ends a generation with kCancelled, or as expired if its deadline, less its slack, has passed;
  // no effect if it is already over.
  void Cancel(RequestHandle handle);
  // Releases a generation whose stream has stopped it; no effect if it is already over.
  void Stop(RequestHandle handle);
  // No prefix is hit any more that was computed, or begun, before.
  void ResetPrefixCache() { kv_.ResetPrefixCache(); }
  // Ends what nobody waits for any more: generations whose deadline has passed, with
  // DEADLINE_EXCEEDED. Step begins with it.
  void EndExpired();
  // Settles one step, if there is anything to do. UNAVAILABLE naming the rank if a worker is lost;
  // Rewind comes next.
  absl::Status Step();
  // Ends every generation, oldest first.
  void EndAll(const absl::Status& status, FinishReason reason);

  bool idle() const { return scheduler_.idle() && pipeline_.empty(); }
  // The workers' health, while idle. Never blocks.
  absl::Status Heartbeat() { return pipeline_.Heartbeat(); }
  // Drops the workers and the steps in flight. Until Resume, Step and Heartbeat must not be called.
  void AbortWorkers(const absl::Status& reason);
  // The workers are lost: AbortWorkers, and every running generation waits again, with the tokens
  // that it has. One that was computed alone, after losses in which it took part, ends with
  // INTERNAL.
  void Rewind(const absl::Status& reason);
  // Continues on the workers of a later epoch, which hold as many KV blocks as the first ones,
  // after a `pause` without any.
  void Resume(ReadyWorkers workers, Duration pause);

  const EngineConfig& config() const { return config_; }
  EngineStats Stats() const;
  const EngineStepTimings& timings() const { return timings_; }
  // Lists, slots, tables and every block. INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity() const;

 private:
  // Submits steps until the pipeline is full or nothing more can run; one if steps are long.
  absl::Status FillPipeline();
  // The moment of a generation's first plan is kept.
  static void NoteScheduled(const Plan& plan, TimePoint now);
  // Adds the step's tokens and log-probabilities to their generations and to deliveries_.
  // Says in the plan how many drafts were accepted.
  void Apply(coordinator::Step& step, const step::StepResult& result);
  void ApplyTo(Generation& generation, const coordinator::Step& step, size_t first_row,
               std::span<const step::RowRequest> rows, std::span<const step::RowResult> results);
  // `pool` is the generation's in the step, if it has one there.
  void ApplyPoolTo(Generation& generation, const coordinator::Step& step,
                   std::optional<size_t> pool, const step::StepResult& result);
  // Ends a request whose logits are not finite; `at` names step and row.
  void NoteNotFinite(const Generation& generation, const std::string& at, absl::Status& status);
  void Expire(const Generation& generation);
  // Ends a request that workers do not survive.
  void EndCulprit(const Generation& generation, const absl::Status& loss);
  // Adds an update, with the usage, to the next deliveries; the last one removes the generation.
  void Send(const Generation& generation, StreamUpdate update);
  void Deliver();
  void Leave(RequestHandle handle);  // removes a generation and releases its blocks

  const EngineConfig config_;
  const Clock& clock_;
  Pipeline pipeline_;
  BlockManager kv_;
  Scheduler scheduler_;
  StepBuilder builder_;
  DraftRecord draft_record_;
  absl::flat_hash_map<RequestHandle, std::shared_ptr<Generation>> generations_;
  std::set<std::pair<TimePoint, RequestHandle>> deadlines_;  // of those that have one
  // Ended generations that steps in flight still refer to, until those settle.
  std::vector<std::shared_ptr<Generation>> leaving_;
  DeliverFn deliver_;
  std::vector<Delivery> deliveries_;         // not handed over yet
  std::vector<step::StepDescriptor> spare_;  // memory of settled steps, for reuse
  Epoch epoch_;                              // of the workers
  int64_t restarts_ = 0;
  Duration last_pause_{};
  uint64_t last_step_ = 0;
  Duration last_step_time_{};  // of the workers, for the step settled last
  int64_t num_not_finite_ = 0;
  int64_t num_unguessed_ = 0;  // steps
  int64_t num_surplus_ = 0;
  int64_t num_expired_ = 0;
  ExplainFn explain_;
  EngineStepTimings timings_;
  StepTracer tracer_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_CORE_H_
