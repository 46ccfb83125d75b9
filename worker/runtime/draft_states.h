// DraftStates: the model's states that its draft head reads. A head pairs a token with the state of
// the token before it (draft_head.h), which is of the same step, or, for the first token of a
// sequence's step, of an earlier one.
//
// Which token that is depends on how many drafts of its step were accepted. So the states of each
// sequence's last kKept positions are kept, by slot. A sequence that is new in its slot has none:
// before its first token, which may follow a cached prefix, zeros stand, as before position 0. That
// may make a guess wrong, never an answer.
//
// Activations are F32. Rows of `hidden_size` values in device memory: max_seqs * kKept kept ones,
// one of zeros, and the states of the step's tokens. Steps in flight have a host side each and
// share the device's.
#ifndef TANDEM_WORKER_RUNTIME_DRAFT_STATES_H_
#define TANDEM_WORKER_RUNTIME_DRAFT_STATES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "kernels/backend.h"
#include "kernels/ops.h"

namespace tandem::worker {

class DraftStates {
 public:
  // A step computes at most kMaxDraftRows drafts of a sequence. They follow a token whose state
  // before it is of an earlier step; else a guess may be wrong.
  static constexpr uint32_t kKept = step::kMaxDraftRows + 1;

  // With the device memory of `shared`, which has the same limits, or its own (null).
  // INVALID_ARGUMENT if they are more values than a ScatterRun can number.
  static absl::StatusOr<DraftStates> Create(const step::StepLimits& limits,
                                            kernels::Backend& backend,
                                            const DraftStates* shared = nullptr);
  // Device memory allocated by Create, if not shared.
  static uint64_t DeviceBytes(const step::StepLimits& limits);

  // Row numbers for `rows` of a gather from `all_states`, in device memory; and what is kept of the
  // step once its states are computed.
  struct Staged {
    const int32_t* of_drafters = nullptr;  // (drafters): of the first pass, in their order
    const int32_t* of_guesses = nullptr;   // (drafters): of every further pass
    const int32_t* of_tokens = nullptr;    // (T): of all tokens of the step
    kernels::ScatterRunsParams keep{};
  };
  // `drafters`: indices of the step's sequences with drafts. `num_tokens`: of the staged batch,
  // which may be padded.
  Staged Stage(const step::StepDescriptor& step, std::span<const uint32_t> drafters,
               uint32_t num_tokens);
  // Encodes one copy of everything staged.
  void Upload(kernels::Backend& backend);

  // In device memory.
  const float* all_states() const { return reinterpret_cast<const float*>(states_->data()); }
  // (T, hidden_size): where the model leaves the step's states; before that, where a pass leaves
  // the head's own for the next pass.
  float* step_states() const;

 private:
  struct Layout;

  // Of the state before `token` of the step, one of sequence `s`, as an earlier step left it.
  int32_t RowBefore(const step::StepDescriptor& step, size_t s, uint32_t token) const;
  int32_t RowOf(uint32_t slot, uint32_t position) const;
  int32_t ZeroRow() const { return static_cast<int32_t>(limits_.max_seqs * kKept); }
  uint32_t StageKept(const step::StepDescriptor& step, kernels::ScatterRun* runs) const;

  step::StepLimits limits_;
  kernels::Buffer staging_;
  size_t used_ = 0;  // bytes of it, for the staged step
  std::shared_ptr<const kernels::Buffer> inputs_;
  std::shared_ptr<const kernels::Buffer> states_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DRAFT_STATES_H_
