// ModelRunner: (weights, KV pages, StepDescriptor) -> StepResult, for one epoch on one rank.
//
// A step is ENCODED whole on the backend's stream, SUBMITTED, and WAITED for once; a guard makes
// anything that blocks in between an error (RunnerOptions::strict). Everything that a step needs
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
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "worker/comm/communicator.h"
#include "worker/model/loaded_model.h"
#include "worker/runtime/decode_graphs.h"
#include "worker/runtime/kv_cache.h"
#include "worker/runtime/runner_options.h"
#include "worker/runtime/runner_plan.h"
#include "worker/runtime/step_buffers.h"
#include "worker/runtime/step_encoder.h"

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

  // Runs one step. A descriptor that fails validation is refused and leaves the runner as it was.
  // The result carries rows on rank 0 alone; every rank learns the sampled ids. `deadline` bounds
  // collectives and WAIT.
  absl::StatusOr<step::StepResult> Run(const step::StepDescriptor& step, Deadline deadline);

  const step::StepLimits& limits() const { return limits_; }
  Communicator* communicator() { return comm_.get(); }

 private:
  // The error that `violation` of the guard is: none where that is not strict, but a line in the
  // log, once.
  absl::Status NoteViolation(const absl::Status& violation);
  absl::Status CaptureGraphs();
  // Stages a step and encodes it with its copies.
  absl::Status Encode(const step::StepDescriptor& step);
  // What a staged step computes; `step` is null where no logits are wanted.
  void EncodeCompute(const Batch& batch, const HeadBatch& head, const step::StepDescriptor* step);
  // Logits of the slice's rows that want them, to the host.
  void EncodeLogits(const step::StepDescriptor& step, const HeadSlice& slice, const float* logits);
  // What came back to the host goes to its rows.
  void Collect(const step::StepDescriptor& step, step::StepResult& result) const;

  LoadedModel& model_;
  StepEncoder encoder_;
  RunnerOptions options_;
  step::StepLimits limits_;
  kernels::Buffer activations_;
  std::optional<StepBuffers> buffers_;
  std::optional<KvCache> kv_;
  std::unique_ptr<Communicator> comm_;
  std::optional<DecodeGraphs> graphs_;  // NCCL waits for graphs to go before a communicator does
  Epoch epoch_;
  bool violation_logged_ = false;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_MODEL_RUNNER_H_
