// The ranges of sampling parameters, checked by client, API, engine and worker.
#ifndef TANDEM_COMMON_STEP_SAMPLING_RANGES_H_
#define TANDEM_COMMON_STEP_SAMPLING_RANGES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tandem::step {

// What is drawn from, given logits (kernels/ops/sample.h). Defaults are off.
struct SamplingFilters {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;
  float typical_p = 1.0f;
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;
};

// What changes logits by the tokens so far (coordinator/engine/logit_adjuster.h). Defaults are off.
struct SamplingPenalties {
  float frequency = 0.0f;
  float presence = 0.0f;
  float repetition = 1.0f;
  int32_t window = -1;  // tokens; -1: as many as kMaxPenaltyWindow, 0: none
  float dry_multiplier = 0.0f;
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = -1;  // as window
};

// INVALID_ARGUMENT naming the parameter as the API does, its value and its range ("top_p is 2, it
// must be ...").
absl::Status CheckSamplingRanges(const SamplingFilters& filters);
absl::Status CheckPenaltyRanges(const SamplingPenalties& penalties);
// Of a bias, by its id.
absl::Status CheckLogitBias(int32_t id, float bias);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_SAMPLING_RANGES_H_
