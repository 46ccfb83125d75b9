// ValidatePools: the part of Validate that is about pooled states.
#ifndef TANDEM_COMMON_STEP_VALIDATE_POOLS_H_
#define TANDEM_COMMON_STEP_VALIDATE_POOLS_H_

#include "absl/status/status.h"
#include "common/step/descriptor.h"
#include "common/step/limits.h"

namespace tandem::step {

// INVALID_ARGUMENT: more pools than the limits allow; one that is empty, not within one sequence,
// or not after the one before. REQUIRES: the step's shape and sequences are valid.
absl::Status ValidatePools(const StepDescriptor& step, const StepLimits& limits);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_VALIDATE_POOLS_H_
