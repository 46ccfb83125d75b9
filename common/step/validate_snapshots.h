// ValidateSnapshots: the part of Validate that is about recurrent states.
#ifndef TANDEM_COMMON_STEP_VALIDATE_SNAPSHOTS_H_
#define TANDEM_COMMON_STEP_VALIDATE_SNAPSHOTS_H_

#include "absl/status/status.h"
#include "common/step/descriptor.h"

namespace tandem::step {

// INVALID_ARGUMENT: a snapshot that does not exist, is written twice, or written and read; a new
// sequence behind position 0 without one. That a snapshot was saved before is the coordinator's to
// know. REQUIRES: the step's shape, sequences and block tables are valid.
absl::Status ValidateSnapshots(const StepDescriptor& step, const StepLimits& limits);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_VALIDATE_SNAPSHOTS_H_
