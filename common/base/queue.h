// A bounded many-producer many-consumer queue with deadlines.
//
// Push never blocks: a full queue answers false, and the caller refuses its own client.
// Thread-safe.
#ifndef TANDEM_COMMON_BASE_QUEUE_H_
#define TANDEM_COMMON_BASE_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace tandem {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when the queue is full or closed; `item` is then untouched.
  bool TryPush(T&& item) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // The oldest item, or nothing when the deadline passes or the queue is closed and empty.
  std::optional<T> Pop(Deadline deadline) {
    std::unique_lock lock(mutex_);
    ready_.wait_until(lock, deadline.when(), [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  // Everything that waits now, oldest first; never blocks.
  std::vector<T> Drain() {
    std::lock_guard lock(mutex_);
    std::vector<T> all(std::make_move_iterator(items_.begin()),
                       std::make_move_iterator(items_.end()));
    items_.clear();
    return all;
  }

  // Waits until there is something to Drain or Pop, the queue is closed, or the deadline passes.
  void WaitNonEmpty(Deadline deadline) {
    std::unique_lock lock(mutex_);
    ready_.wait_until(lock, deadline.when(), [&] { return closed_ || !items_.empty(); });
  }

  // No more pushes; waiters wake up.
  void Close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_QUEUE_H_
