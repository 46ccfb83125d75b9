#include "worker/comm/communicator_watch.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "worker/comm/collective.h"

namespace tandem::worker {
namespace {

// Long enough to yield the core to the library's threads.
constexpr auto kPollInterval = std::chrono::microseconds(50);

}  // namespace

absl::Status CommunicatorWatch::Await(const std::string& what, Deadline deadline) {
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const bool done, Poll());
    if (done) return absl::OkStatus();
    if (deadline.Passed()) {
      return Break(absl::DeadlineExceededError(
          absl::StrCat("communicator: ", name_, ": not all ranks arrived in time at ", what)));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

absl::StatusOr<bool> CommunicatorWatch::Poll() {
  if (broken()) return broken_;
  {
    MutexLock lock(mutex_);
    if (!requested_.ok()) return Break(requested_);
  }
  absl::StatusOr<bool> done = handle_.Done();
  if (done.ok()) return done;
  return Break(Annotate(done.status(), absl::StrCat("communicator: ", name_)));
}

absl::Status CommunicatorWatch::Check() { return Poll().status(); }

void CommunicatorWatch::Cancel(const absl::Status& reason) {
  Break(AbortReason(reason)).IgnoreError();
}

void CommunicatorWatch::Abort(const absl::Status& reason) {
  MutexLock lock(mutex_);
  if (requested_.ok()) requested_ = AbortReason(reason);
}

absl::Status CommunicatorWatch::Break(const absl::Status& reason) {
  if (broken()) return broken_;
  broken_ = reason;
  handle_.Abort();
  return broken_;
}

}  // namespace tandem::worker
