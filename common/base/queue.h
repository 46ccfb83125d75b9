// A bounded many-producer many-consumer queue with deadlines.
//
// Push never blocks: it returns false if the queue is full, and the caller rejects its client
// (backpressure). Thread-safe.
#ifndef TANDEM_COMMON_BASE_QUEUE_H_
#define TANDEM_COMMON_BASE_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace tandem {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when the queue is full or closed; `item` is then untouched.
  bool TryPush(T&& item) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.NotifyOne();
    return true;
  }

  // The oldest item, or nothing when the deadline passes or the queue is closed and empty.
  std::optional<T> Pop(Deadline deadline) {
    MutexLock lock(mutex_);
    ready_.Wait(lock, deadline,
                [&]() TANDEM_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  // All queued items, oldest first; never blocks.
  std::vector<T> Drain() {
    MutexLock lock(mutex_);
    std::vector<T> all(std::make_move_iterator(items_.begin()),
                       std::make_move_iterator(items_.end()));
    items_.clear();
    return all;
  }

  // Waits until there is something to Drain or Pop, the queue is closed, or the deadline passes.
  void WaitNonEmpty(Deadline deadline) {
    MutexLock lock(mutex_);
    ready_.Wait(lock, deadline,
                [&]() TANDEM_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
  }

  // No more pushes; waiters wake up.
  void Close() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.NotifyAll();
  }

  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }

  size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar ready_;
  std::deque<T> items_ TANDEM_GUARDED_BY(mutex_);
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_QUEUE_H_
