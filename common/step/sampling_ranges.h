// The ranges of sampling parameters, checked by API, engine and worker.
#ifndef TANDEM_COMMON_STEP_SAMPLING_RANGES_H_
#define TANDEM_COMMON_STEP_SAMPLING_RANGES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tandem::step {

// INVALID_ARGUMENT naming the parameter, its value and its range ("top_p is 2, it must be ...").
absl::Status CheckSamplingRanges(float temperature, float top_p, float min_p, int32_t top_k);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_SAMPLING_RANGES_H_
