// ModelRunner: (weights, KV pages, block tables, StepDescriptor) -> StepResult, for one epoch on
// one rank.
//
// A step is ENCODED whole on the backend's stream, SUBMITTED, and WAITED for once; a guard makes
// anything that blocks in between an error (DeviceConfig::strict). Everything that a step needs
// was planned and allocated in Prepare and Start. One thread.
#ifndef TANDEM_WORKER_RUNTIME_MODEL_RUNNER_H_
#define TANDEM_WORKER_RUNTIME_MODEL_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/step/block_tables.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "worker/comm/communicator.h"
#include "worker/model/loaded_model.h"
#include "worker/runtime/kv_cache.h"
#include "worker/runtime/runner_options.h"
#include "worker/runtime/runner_plan.h"
#include "worker/runtime/step_encoder.h"
#include "worker/runtime/step_slot.h"

namespace tandem::worker {

class ModelRunner {
 public:
  // `model` must outlive the runner.
  ModelRunner(LoadedModel& model, const RunnerOptions& options)
      : model_(model), encoder_(model.decoder(), model.spec(), model.plan()), options_(options) {}

  // The memory plan (planner.h); reserves activations and scratch.
  absl::StatusOr<RunnerPlan> Prepare();
  // Allocates the KV pages for the blocks that the group agreed on, and captures decode graphs
  // where the backend has them: all ranks at once. `comm` is null for one rank.
  absl::Status Start(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                     std::unique_ptr<Communicator> comm);

  // Encodes and submits one step; steps run in the order of Begin. A descriptor that fails
  // validation is refused and leaves the runner, block tables included, as it was. `deadline`
  // bounds collectives and WAIT. REQUIRES: fewer than step::kPipelineDepth steps are begun and not
  // finished.
  absl::StatusOr<StepTicket> Begin(step::StepDescriptor step, Deadline deadline);
  // Waits for the oldest step that was begun. The result carries rows on rank 0 alone, its rank and
  // epoch are the caller's to set; every rank learns the sampled ids.
  absl::StatusOr<step::StepResult> Finish(StepTicket ticket);
  // Begin and Finish.
  absl::StatusOr<step::StepResult> Run(step::StepDescriptor step, Deadline deadline);

  const step::StepLimits& limits() const { return limits_; }
  Communicator* communicator() { return comm_.get(); }

 private:
  // The error that `violation` of the guard is: none where that is not strict, but a line in the
  // log, once.
  absl::Status NoteViolation(const absl::Status& violation);
  absl::Status CaptureGraphs(StepSlot& slot);
  // Stages the slot's step and encodes it with its copies.
  void Encode(StepSlot& slot);
  // What a staged step computes; `step` is null where no logits are wanted.
  void EncodeCompute(const Batch& batch, const HeadBatch& head, const step::StepDescriptor* step,
                     StepBuffers& buffers);
  // Logits of the slice's rows that want them, to the host.
  void EncodeLogits(const step::StepDescriptor& step, const HeadSlice& slice, const float* logits,
                    StepBuffers& buffers);
  // What came back to the host goes to its rows.
  std::vector<step::RowResult> CollectRows(const StepSlot& slot) const;

  LoadedModel& model_;
  StepEncoder encoder_;
  RunnerOptions options_;
  step::StepLimits limits_;
  kernels::Buffer activations_;
  std::optional<KvCache> kv_;
  step::BlockTables tables_;
  std::unique_ptr<Communicator> comm_;
  std::vector<StepSlot> slots_;  // NCCL waits for graphs to go before a communicator does
  uint32_t next_slot_ = 0;       // that Begin takes, in turns
  Epoch epoch_;
  bool violation_logged_ = false;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_MODEL_RUNNER_H_
