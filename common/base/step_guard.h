// The guard of ENCODE -> SUBMIT -> WAIT: from the start of ENCODE to WAIT a worker must not block,
// allocate device memory or read back. Every function that does so calls NoteBlockingCall; inside a
// guarded phase the call is recorded, and the model runner turns it into an error that names it.
// Per thread; costs one thread-local read outside a phase.
#ifndef TANDEM_COMMON_BASE_STEP_GUARD_H_
#define TANDEM_COMMON_BASE_STEP_GUARD_H_

#include "absl/status/status.h"

namespace tandem {

// Marks ENCODE and SUBMIT of one step on this thread. Does not nest.
class StepGuard {
 public:
  StepGuard();
  ~StepGuard();
  StepGuard(const StepGuard&) = delete;
  StepGuard& operator=(const StepGuard&) = delete;

  // OK, or FAILED_PRECONDITION naming the first blocking call made since the guard began.
  absl::Status Check() const;
};

// Called by every function that blocks, allocates device memory or reads back; `what` is a literal
// such as "Channel::Receive".
void NoteBlockingCall(const char* what);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_STEP_GUARD_H_
