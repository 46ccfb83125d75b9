// OpenCalls: how many calls run. A server's Shutdown also waits for connections, which end only
// when their clients take notice; calls are what must not be cut short.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRPC_OPEN_CALLS_H_
#define TANDEM_COORDINATOR_API_GRPC_OPEN_CALLS_H_

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace tandem::coordinator {

class OpenCalls {
 public:
  // One call, as long as it lives.
  class Call {
   public:
    explicit Call(OpenCalls& calls) : calls_(calls) { calls_.Add(1); }
    ~Call() { calls_.Add(-1); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    OpenCalls& calls_;
  };

  // Whether no call runs by the deadline.
  bool WaitNone(Deadline deadline) {
    MutexLock lock(mutex_);
    return changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) { return num_open_ == 0; });
  }

 private:
  void Add(int64_t calls) {
    MutexLock lock(mutex_);
    num_open_ += calls;
    if (num_open_ == 0) changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  int64_t num_open_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_OPEN_CALLS_H_
