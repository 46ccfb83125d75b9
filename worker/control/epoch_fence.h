// EpochFence: which epochs of this worker are over, and why. Epochs end in order, so one number
// suffices: all below it are over.
//
// It records early events, such as the abort of an epoch whose communicator does not exist yet.
// Thread-safe.
#ifndef TANDEM_WORKER_CONTROL_EPOCH_FENCE_H_
#define TANDEM_WORKER_CONTROL_EPOCH_FENCE_H_

#include <limits>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace tandem::worker {

class EpochFence {
 public:
  // `epoch` and all before it are over because of `reason`, which is not OK. The reason of an epoch
  // is kept until a later call ends higher epochs.
  void EndThrough(Epoch epoch, const absl::Status& reason) {
    constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
    RaiseTo(epoch.value == kLast ? kLast : epoch.value + 1, reason);
  }
  // `epoch` begins: all before it are over because of `reason`.
  void EndBefore(Epoch epoch, const absl::Status& reason) { RaiseTo(epoch.value, reason); }
  // The worker stops: ends every epoch.
  void EndAll(const absl::Status& reason) {
    MutexLock lock(mutex_);
    if (all_.ok()) all_ = reason;
  }

  // OK while `epoch` is not over; else why it is.
  absl::Status Check(Epoch epoch) const {
    MutexLock lock(mutex_);
    if (epoch.value < live_) return reason_;
    return all_;
  }

 private:
  void RaiseTo(uint64_t live, const absl::Status& reason) {
    MutexLock lock(mutex_);
    if (live <= live_) return;
    live_ = live;
    reason_ = reason;
  }

  mutable Mutex mutex_;
  uint64_t live_ TANDEM_GUARDED_BY(mutex_) = 0;    // the first epoch that is not over
  absl::Status reason_ TANDEM_GUARDED_BY(mutex_);  // not OK once live_ > 0
  absl::Status all_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_EPOCH_FENCE_H_
