// std::mutex and std::condition_variable with the annotations of Clang's thread safety analysis, so
// that `./dev lint` rejects code that accesses a guarded member without its mutex.
//
//   Mutex mutex_;
//   CondVar changed_;
//   std::deque<int> items_ TANDEM_GUARDED_BY(mutex_);
//
//   MutexLock lock(mutex_);
//   changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) { return !items_.empty(); });
//
// Other compilers ignore the annotations. Based on std::mutex because ThreadSanitizer supports it,
// unlike Debian's absl::Mutex.
#ifndef TANDEM_COMMON_BASE_MUTEX_H_
#define TANDEM_COMMON_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "common/base/clock.h"
#include "common/base/thread_annotations.h"

namespace tandem {

class TANDEM_THREAD_ANNOTATION(capability("mutex")) Mutex {
 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex for its lifetime, except between Unlock and Lock.
class TANDEM_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TANDEM_THREAD_ANNOTATION(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() TANDEM_THREAD_ANNOTATION(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() TANDEM_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }
  void Lock() TANDEM_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// Waits for a change made by another thread under the mutex of `lock`. `ready` is called with it
// held.
class CondVar {
 public:
  template <typename Ready>
  void Wait(MutexLock& lock, Ready ready) {
    changed_.wait(lock.lock_, ready);
  }
  // Whether `ready` returned true before the deadline.
  template <typename Ready>
  bool Wait(MutexLock& lock, Deadline deadline, Ready ready) {
    return deadline.Wait(changed_, lock.lock_, ready);
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_MUTEX_H_
