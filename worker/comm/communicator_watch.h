// CommunicatorWatch: watches a communicator whose library works in the background: joining, in use,
// broken. Every wait polls, has a deadline and ends on an abort, so no call blocks longer than its
// caller allows.
//
// Only the backend's thread uses the library's handle: Abort, which any thread may call, records
// its reason for the next poll, by Await or by Backend::Wait (StreamWatch). The first reason is
// kept.
#ifndef TANDEM_WORKER_COMM_COMMUNICATOR_WATCH_H_
#define TANDEM_WORKER_COMM_COMMUNICATOR_WATCH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kernels/backend.h"

namespace tandem::worker {

// A communicator of the library.
class AsyncConnection {
 public:
  virtual ~AsyncConnection() = default;
  // Whether the last call has ended; the error of the communicator, if it has one.
  virtual absl::StatusOr<bool> Done() = 0;
  // Aborts all enqueued work, here and on the peers. Called once, as the last call.
  virtual void Abort() = 0;
};

class CommunicatorWatch : public kernels::StreamWatch {
 public:
  // `handle` must outlive this. `name`, such as "rank 1 of 4", goes into errors.
  CommunicatorWatch(AsyncConnection& handle, std::string name)
      : handle_(handle), name_(std::move(name)) {}

  // Waits until the handle's last call has ended; `what` names it in errors. DEADLINE_EXCEEDED, the
  // handle's error or an abort's reason: afterwards the handle is aborted.
  absl::Status Await(const std::string& what, Deadline deadline);
  // As Await, without waiting: whether the call has ended.
  absl::StatusOr<bool> Poll();

  // Never waits; calls in progress are fine.
  absl::Status Check() override;
  void Cancel(const absl::Status& reason) override;

  // From any thread.
  void Abort(const absl::Status& reason);

  // Once broken, the handle is invalid.
  bool broken() const { return !broken_.ok(); }

 private:
  // Aborts the handle unless already aborted; returns the reason.
  absl::Status Break(const absl::Status& reason);

  AsyncConnection& handle_;
  const std::string name_;
  absl::Status broken_;
  Mutex mutex_;
  absl::Status requested_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_COMMUNICATOR_WATCH_H_
