// ValidateReferences: the part of Validate that is about tokens of the step before.
#ifndef TANDEM_COMMON_STEP_VALIDATE_REFERENCES_H_
#define TANDEM_COMMON_STEP_VALIDATE_REFERENCES_H_

#include "absl/status/status.h"
#include "common/step/block_tables.h"
#include "common/step/descriptor.h"

namespace tandem::step {

// INVALID_ARGUMENT: a reference to a sample that the previous step does not draw, or draws for
// another slot or position; from a token that is not the last of its sequence, or has an id.
// REQUIRES: the step's shape and sequences are valid.
absl::Status ValidateReferences(const StepDescriptor& step, const BlockTables& tables);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_VALIDATE_REFERENCES_H_
