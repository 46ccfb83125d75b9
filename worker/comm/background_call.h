// BackgroundCall: a library call that may never return, run on a separate thread, so that its
// caller can wait with a deadline. A call that does not return is abandoned, so it must own or
// share everything it uses.
#ifndef TANDEM_WORKER_COMM_BACKGROUND_CALL_H_
#define TANDEM_WORKER_COMM_BACKGROUND_CALL_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace tandem::worker {

class BackgroundCall {
 public:
  // Once. The thread is detached; process exit does not wait for it.
  void Begin(std::function<absl::Status()> call);
  bool begun() const { return state_ != nullptr; }

  // What the call returned, once it has. REQUIRES: begun().
  std::optional<absl::Status> Result() const;
  // Waits until the call has returned, if it was begun; false at the deadline.
  bool WaitUntil(Deadline deadline) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_BACKGROUND_CALL_H_
