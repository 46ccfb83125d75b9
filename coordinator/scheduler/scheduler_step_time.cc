// Scheduler's bound on the time of a step in which sequences decode.
#include <algorithm>

#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {

std::optional<StepLoad> Scheduler::DecodeLoad() const {
  if (config_.target_itl == Duration::zero()) return std::nullopt;
  StepLoad load;
  bool any_decodes = false;
  for (const Sequence* sequence : running_) {
    if (sequence->phase() != Phase::kDecode) continue;
    any_decodes = true;  // one that is not ready has its next token after this step
    if (!IsReady(*sequence)) continue;
    for (uint32_t i = 0; i < sequence->num_missing(); ++i) {
      load.AddDecode(sequence->num_scheduled + i);
    }
  }
  return any_decodes ? std::optional(load) : std::nullopt;
}

uint32_t Scheduler::PrefillInTime(uint32_t begin, uint32_t most, const StepLoad& load) const {
  const uint64_t first_chunk = kv_.config().block_size;
  // The model is not trusted far beyond what it has seen.
  const uint64_t known = std::max(first_chunk, 2 * times_.most_prefill_tokens());
  most =
      static_cast<uint32_t>(std::min<uint64_t>(most, known - std::min(known, load.prefill_tokens)));
  const auto is_in_time = [&](uint32_t num_tokens) {
    StepLoad with = load;
    with.AddPrefill(begin, num_tokens);
    return times_.Predict(with) <= config_.target_itl;
  };
  uint32_t fits = 0, too_many = most + 1;
  while (too_many - fits > 1) {
    const uint32_t middle = fits + (too_many - fits) / 2;
    (is_in_time(middle) ? fits : too_many) = middle;
  }
  // Some prefill in every step, so that prompts end.
  const bool is_first = load.prefill_tokens == 0;
  return is_first ? std::max<uint32_t>(fits, std::min<uint64_t>(most, first_chunk)) : fits;
}

void Scheduler::NoteStepTime(const Plan& plan, Duration time) {
  if (config_.target_itl == Duration::zero() || time <= Duration::zero()) return;
  times_.Learn(StepLoad::Of(plan), time);
}

}  // namespace tandem::coordinator
