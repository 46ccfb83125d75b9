#include "worker/runtime/draft_states.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::worker {
namespace {

constexpr uint32_t kMostDrafters = step::kMaxDraftRows;

uint64_t StateValues(const step::StepLimits& limits) {
  const uint64_t rows = uint64_t{limits.max_seqs} * DraftStates::kKept + 1 + limits.max_tokens;
  return rows * limits.hidden_size;
}

}  // namespace

// Of the inputs, in bytes from their beginning.
struct DraftStates::Layout {
  explicit Layout(const step::StepLimits& limits)
      : of_guesses(kMostDrafters * sizeof(int32_t)),
        of_tokens(of_guesses + kMostDrafters * sizeof(int32_t)),
        runs(Aligned(of_tokens + limits.max_tokens * sizeof(int32_t))),
        bytes(runs + size_t{limits.max_seqs} * kKept * sizeof(kernels::ScatterRun)) {}

  static size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

  size_t of_drafters = 0, of_guesses, of_tokens, runs, bytes;
};

absl::StatusOr<DraftStates> DraftStates::Create(const step::StepLimits& limits,
                                                kernels::Backend& backend,
                                                const DraftStates* shared) {
  const uint64_t values = StateValues(limits);
  if (values > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--speculation mtp keeps states of ", limits.hidden_size, " values, ", kKept,
                     " for each of ", limits.max_seqs, " sequences and one for each of ",
                     limits.max_tokens, " tokens: ", values, " values, at most 2^32 - 1"));
  }
  const size_t bytes = Layout(limits).bytes;
  DraftStates made;
  made.limits_ = limits;
  TANDEM_ASSIGN_OR_RETURN(made.staging_, backend.AllocateHost(bytes));
  if (shared != nullptr) {
    made.inputs_ = shared->inputs_;
    made.states_ = shared->states_;
    return made;
  }
  TANDEM_ASSIGN_OR_RETURN(kernels::Buffer inputs, backend.Allocate(bytes));
  TANDEM_ASSIGN_OR_RETURN(kernels::Buffer states, backend.Allocate(values * sizeof(float)));
  made.inputs_ = std::make_shared<const kernels::Buffer>(std::move(inputs));
  made.states_ = std::make_shared<const kernels::Buffer>(std::move(states));
  return made;
}

uint64_t DraftStates::DeviceBytes(const step::StepLimits& limits) {
  return StateValues(limits) * sizeof(float) + Layout(limits).bytes;
}

float* DraftStates::step_states() const {
  return reinterpret_cast<float*>(states_->data()) + size_t{limits_.hidden_size} * (ZeroRow() + 1);
}

int32_t DraftStates::RowOf(uint32_t slot, uint32_t position) const {
  return static_cast<int32_t>(slot * kKept + position % kKept);
}

int32_t DraftStates::RowBefore(const step::StepDescriptor& step, size_t s, uint32_t token) const {
  const bool is_new = step.groups[0].tables[s].length_before == 0;
  const auto position = static_cast<uint32_t>(step.positions[token]);
  return is_new || position == 0 ? ZeroRow() : RowOf(step.sequences[s].slot, position - 1);
}

DraftStates::Staged DraftStates::Stage(const step::StepDescriptor& step,
                                       std::span<const uint32_t> drafters, uint32_t num_tokens) {
  TANDEM_CHECK(drafters.size() <= kMostDrafters && num_tokens <= limits_.max_tokens);
  const Layout at(limits_);
  const auto host = [&](size_t offset) {
    return reinterpret_cast<int32_t*>(staging_.data() + offset);
  };
  const auto device = [&](size_t offset) {
    return reinterpret_cast<const int32_t*>(inputs_->data() + offset);
  };
  const int32_t first_of_step = ZeroRow() + 1;
  for (size_t i = 0; i < drafters.size(); ++i) {
    const uint32_t s = drafters[i];
    host(at.of_drafters)[i] = RowBefore(step, s, step.TokenBeforeDrafts(s));
    host(at.of_guesses)[i] = first_of_step + static_cast<int32_t>(i);
  }
  int32_t* const of_tokens = host(at.of_tokens);
  std::fill_n(of_tokens, num_tokens, ZeroRow());
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const uint32_t begin = step.query_offsets[s];
    of_tokens[begin] = RowBefore(step, s, begin);
    for (uint32_t t = begin + 1; t < step.query_offsets[s + 1]; ++t) {
      of_tokens[t] = first_of_step + static_cast<int32_t>(t) - 1;
    }
  }
  const uint32_t num_runs =
      StageKept(step, reinterpret_cast<kernels::ScatterRun*>(staging_.data() + at.runs));
  used_ = at.runs + num_runs * sizeof(kernels::ScatterRun);
  return {.of_drafters = device(at.of_drafters),
          .of_guesses = device(at.of_guesses),
          .of_tokens = device(at.of_tokens),
          .keep = {.runs = reinterpret_cast<const kernels::ScatterRun*>(inputs_->data() + at.runs),
                   .num_runs = num_runs,
                   .values = reinterpret_cast<const int32_t*>(step_states()),
                   .num_values = num_tokens * limits_.hidden_size,
                   .out = reinterpret_cast<int32_t*>(states_->data()),
                   .out_size = size_t{limits_.hidden_size} * ZeroRow()}};
}

// A row is a run of the bits of its values.
uint32_t DraftStates::StageKept(const step::StepDescriptor& step, kernels::ScatterRun* runs) const {
  const uint32_t hidden = limits_.hidden_size;
  uint32_t count = 0;
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const step::SequenceEntry& sequence = step.sequences[s];
    for (uint32_t last = 1; last <= std::min(sequence.query_len, kKept); ++last) {
      const int32_t row = RowOf(sequence.slot, sequence.context_len - last);
      runs[count++] = {.to = uint64_t{hidden} * static_cast<uint64_t>(row),
                       .from = hidden * (step.query_offsets[s + 1] - last),
                       .count = hidden};
    }
  }
  return count;
}

void DraftStates::Upload(kernels::Backend& backend) {
  backend.Upload(inputs_->data(), staging_.data(), used_);
}

}  // namespace tandem::worker
