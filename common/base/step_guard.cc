#include "common/base/step_guard.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tandem {
namespace {

struct GuardState {
  bool active = false;
  const char* violation = nullptr;
};

thread_local GuardState t_guard;

}  // namespace

StepGuard::StepGuard() {
  TANDEM_CHECK(!t_guard.active) << "step guards do not nest";
  t_guard = {.active = true, .violation = nullptr};
}

StepGuard::~StepGuard() { t_guard = {}; }

absl::Status StepGuard::Check() const {
  if (t_guard.violation == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("blocking call between ENCODE and WAIT: ", t_guard.violation));
}

void NoteBlockingCall(const char* what) {
  if (t_guard.active && t_guard.violation == nullptr) t_guard.violation = what;
}

}  // namespace tandem
