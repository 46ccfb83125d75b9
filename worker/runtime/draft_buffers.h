// DraftBuffers: what a guesser, a draft model or the model's draft head, reads in a step besides
// the step's own batch, staged in host memory; and what it guesses.
//
// A draft is a pass of the guesser on the token before it, for all sequences with one more draft:
// ids are those that the pass before has guessed. Then the whole step, drafts included, is a batch
// of the guesser too, which gives the guesses that are only judged, and leaves its K and V of every
// token of the step. A draft head reads states as well: draft_states.h. Of a step that skips the
// guesser (step::StepDescriptor) nothing is staged here.
//
// Steps in flight have a host side each and share the device's, as those of StepBuffers.
#ifndef TANDEM_WORKER_RUNTIME_DRAFT_BUFFERS_H_
#define TANDEM_WORKER_RUNTIME_DRAFT_BUFFERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/step/descriptor.h"
#include "kernels/backend.h"
#include "worker/runtime/draft_states.h"
#include "worker/runtime/step_buffers.h"

namespace tandem::worker {

// One run of the guesser. Pointers are to device memory.
struct DraftPass {
  Batch batch;
  HeadBatch head;
  int32_t* guesses = nullptr;  // (head.num_samples)
  // Of a draft head: rows of all_states, one for each token, that it reads.
  const float* all_states = nullptr;
  const int32_t* state_rows = nullptr;  // (T)
  float* own_states = nullptr;          // (T, hidden size): left for the next pass; null: not kept
};

struct DraftBuffersOptions {
  size_t group = 0;      // the model's KV group whose blocks hold the guesser's K and V
  size_t own_group = 0;  // the same group's number in the guesser
  bool reads_states = false;
};

class DraftBuffers {
 public:
  // With the device memory of `shared`, which has the same limits and options, or its own (null).
  static absl::StatusOr<DraftBuffers> Create(const step::StepLimits& limits,
                                             const DraftBuffersOptions& options,
                                             kernels::Backend& backend,
                                             const DraftBuffers* shared = nullptr);
  // Device memory allocated by Create, if not shared.
  static uint64_t DeviceBytes(const step::StepLimits& limits, bool reads_states);

  // Stages what the guesser does for `step`, staged as `staged`; all pointers are to the
  // destination of Upload. `passes` come first, in order; then `token_update` writes the drafts to
  // the step's tokens. Once the model has run, which leaves its states in `model_states` unless
  // that is null, `whole` is the last pass, and then `keep_states` is encoded if it has runs.
  struct Staged {
    std::vector<DraftPass> passes;
    kernels::ScatterRunsParams token_update{};
    DraftPass whole;
    kernels::ScatterRunsParams keep_states{};
  };
  Staged Stage(const step::StepDescriptor& step, const StepBuffers::Staged& staged);
  // Encodes the copies of everything staged, one of them of states if it reads any.
  void Upload(kernels::Backend& backend);
  // Encodes the copy of the staged step's guesses, if it has any.
  void Download(kernels::Backend& backend);
  // After Wait: StepResult::guesses.
  std::vector<TokenId> Guesses() const;
  // Where the model leaves the states of a step, at the same place each time; null: nobody reads
  // them.
  float* model_states() const { return states_.has_value() ? states_->step_states() : nullptr; }

 private:
  struct Inputs;

  Inputs& host() { return *reinterpret_cast<Inputs*>(staging_.data()); }
  int32_t* results() const { return reinterpret_cast<int32_t*>(results_->data()); }
  // Both in device memory. (MaxSamples) rows, of which number i draws greedily from logits i.
  const kernels::SamplingRow* greedy() const;
  const int32_t* judged() const;  // (MaxSamples) token numbers
  // A head on `count` tokens.
  HeadBatch Head(const int32_t* tokens, uint32_t count) const;
  // Of sequences in the order of their number of drafts.
  void StagePass(const step::StepDescriptor& step, const StepBuffers::Staged& staged,
                 uint32_t index, Staged& out);
  // The guesser's groups, of which only its own is used.
  std::vector<GroupBatch> Groups(const GroupBatch& own) const;
  // The states that the passes read and leave.
  void StageStates(const step::StepDescriptor& step, Staged& out);
  void StageTokenUpdate(const step::StepDescriptor& step, const StepBuffers::Staged& staged,
                        Staged& out);
  // The rows whose guesses `whole` makes; fills guess_at_.
  uint32_t StageJudged(const step::StepDescriptor& step);

  step::StepLimits limits_;
  DraftBuffersOptions options_;
  std::optional<DraftStates> states_;
  kernels::Buffer staging_;
  std::shared_ptr<const kernels::Buffer> device_;
  std::shared_ptr<const kernels::Buffer> results_;  // the passes' guesses one after the other
  kernels::Buffer host_results_;
  // Of the staged step.
  std::vector<uint32_t> order_;     // sequences with drafts, those with most first
  std::vector<uint32_t> begins_;    // of each pass in the results, and the end of the last
  std::vector<uint32_t> guess_at_;  // of each row with a guess: its index in the results
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DRAFT_BUFFERS_H_
