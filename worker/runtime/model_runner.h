// ModelRunner: (weights, KV pages, block tables, StepDescriptor) -> StepResult, for one epoch on
// one rank.
//
// A step is fully ENCODED on the backend's stream, SUBMITTED, and WAITED for once; a guard makes
// any blocking call in between an error (DeviceConfig::strict). On a device the next step is
// encoded and submitted while it computes the one before. All memory of a step is planned and
// allocated in Prepare and Start. One thread.
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
#include "worker/runtime/decode_graphs.h"
#include "worker/runtime/device_tables.h"
#include "worker/runtime/draft_head_encoder.h"
#include "worker/runtime/kv_cache.h"
#include "worker/runtime/recurrent_states.h"
#include "worker/runtime/runner_options.h"
#include "worker/runtime/runner_plan.h"
#include "worker/runtime/step_encoder.h"
#include "worker/runtime/step_slot.h"

namespace tandem::worker {

class ModelRunner {
 public:
  // `model` must outlive the runner.
  ModelRunner(LoadedModel& model, const RunnerOptions& options);

  // The memory plan (planner.h); reserves activations and scratch.
  absl::StatusOr<RunnerPlan> Prepare();
  // Allocates the KV pages for the blocks agreed on by the group and the recurrent states, and
  // captures decode graphs if the backend has them; collective over ranks. `comm` is null for one
  // rank. REQUIRES: no step is in flight, here and in the destructor.
  absl::Status Start(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                     std::unique_ptr<Communicator> comm);

  // How many steps may be in flight: begun, and not finished.
  uint32_t max_in_flight() const;
  // Encodes and submits one step; steps run in the order of Begin. A descriptor that fails
  // validation is rejected and leaves the runner and its block tables unchanged. `deadline` bounds
  // collectives and WAIT. After any other error, also from Finish, the contents of pages and block
  // tables are unknown: every later step, begun or not, is FAILED_PRECONDITION until Start.
  // REQUIRES: fewer than max_in_flight() steps are in flight.
  absl::StatusOr<StepTicket> Begin(step::StepDescriptor step, Deadline deadline);
  // Whether Finish of the oldest step in flight would not wait for it (Backend::Done).
  bool Done(StepTicket ticket);
  // Waits for the oldest step in flight. Only rank 0's result has rows; the caller sets its rank
  // and epoch; every rank receives the sampled ids.
  absl::StatusOr<step::StepResult> Finish(StepTicket ticket);
  // Begin and Finish.
  absl::StatusOr<step::StepResult> Run(step::StepDescriptor step, Deadline deadline);

  const step::StepLimits& limits() const { return limits_; }
  Communicator* communicator() { return comm_.get(); }

 private:
  // The error for a `violation` of the guard; if not strict, none, and a log line, once.
  absl::Status NoteViolation(const absl::Status& violation);
  // OK, or why `step` is worth nothing: an earlier one failed.
  absl::Status AfterFailure(StepId step) const;
  // The communicator's TimeSpent; none without one.
  std::optional<Duration> CollectiveTime() const;
  // A step of the epoch has failed; the first one stays.
  void NoteFailure(StepId step);
  // Waits for the slot's step; its error, or that of one before it.
  absl::Status Wait(StepSlot& slot);
  absl::Status CaptureGraphs();
  // Stages the slot's step and encodes it with its copies.
  void Encode(StepSlot& slot);
  bool HasGuesser() const { return draft_encoder_.has_value() || head_encoder_.has_value(); }
  // Encodes the step's drafts, which come before the model.
  void EncodeDrafts(const DraftBuffers::Staged& staged);
  // Encodes one run of the draft model or head.
  void EncodePass(const DraftPass& pass);
  // Encodes the computation of a staged step; `step` is null if no logits are requested.
  void EncodeCompute(const Batch& batch, const HeadBatch& head, const step::StepDescriptor* step,
                     StepSlot& slot);
  // Copies the logits of the slice's rows that request them to the host.
  void EncodeLogits(const step::StepDescriptor& step, const HeadSlice& slice, const float* logits,
                    StepBuffers& buffers);
  // Writes the downloaded results to their rows.
  std::vector<step::RowResult> CollectRows(const StepSlot& slot) const;

  LoadedModel& model_;
  StepEncoder encoder_;
  std::optional<StepEncoder> draft_encoder_;      // with a draft model
  std::optional<DraftHeadEncoder> head_encoder_;  // with a draft head, and no draft model
  RunnerOptions options_;
  step::StepLimits limits_;
  kernels::Buffer activations_;
  std::optional<KvCache> kv_;
  std::optional<KvCache> draft_kv_;  // in blocks of the group with full attention
  std::optional<RecurrentStates> states_;
  step::BlockTables tables_;
  std::optional<DeviceTables> device_tables_;
  std::unique_ptr<Communicator> comm_;
  std::vector<StepSlot> slots_;
  std::optional<DecodeGraphs> graphs_;  // of all slots: they share the device's buffers. NCCL
                                        // requires them to be destroyed before the communicator
  uint32_t next_slot_ = 0;              // used by the next Begin, round-robin
  int64_t finished_at_us_ = 0;          // when the last step was found done
  Epoch epoch_;
  StepId failed_step_;  // of this epoch; 0: none
  bool violation_logged_ = false;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_MODEL_RUNNER_H_
