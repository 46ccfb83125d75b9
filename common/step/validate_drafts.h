// Drafts of a step, checked. Internal to common/step.
#ifndef TANDEM_COMMON_STEP_VALIDATE_DRAFTS_H_
#define TANDEM_COMMON_STEP_VALIDATE_DRAFTS_H_

#include "absl/status/status.h"
#include "common/step/descriptor.h"

namespace tandem::step {

// The workers have a draft model or head if anything is to be guessed; a sequence with drafts has
// one token before them, zeros in their places, and a row with a guess at the token before each;
// guesses are of samples; a step that skips the guesser wants none. REQUIRES: shape, sequences and
// rows are valid.
absl::Status ValidateDrafts(const StepDescriptor& step, const StepLimits& limits);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_VALIDATE_DRAFTS_H_
