#include "coordinator/scheduler/scheduler_config.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/config/limits_config.h"
#include "common/step/limits.h"

namespace tandem::coordinator {
namespace {

// Positions and offsets of a step are 32-bit signed.
absl::Status CheckRange(const char* flag, uint32_t value) {
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  if (value >= 1 && value <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " must be 1 to ", kMost, ", is ", value));
}

}  // namespace

absl::Status SchedulerConfig::Validate() const {
  for (const auto& [flag, value] : {
           std::pair{"--max-num-seqs", max_num_seqs},
           std::pair{"--max-num-batched-tokens", max_num_batched_tokens},
           std::pair{"--chunked-prefill-size", chunked_prefill_size},
           std::pair{"--max-model-len", max_model_len},
       }) {
    if (absl::Status status = CheckRange(flag, value); !status.ok()) return status;
  }
  return config::CheckTokenBudget(max_num_batched_tokens, max_num_seqs);
}

uint32_t SchedulerConfig::MostSamples() const {
  return step::StepLimits{.max_tokens = max_num_batched_tokens, .max_seqs = max_num_seqs}
      .MaxSamples();
}

}  // namespace tandem::coordinator
