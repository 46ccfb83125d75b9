// Invalid: the error of a step that fails validation. Internal to common/step.
#ifndef TANDEM_COMMON_STEP_INVALID_H_
#define TANDEM_COMMON_STEP_INVALID_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tandem::step {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("step: ", args...));
}

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_INVALID_H_
