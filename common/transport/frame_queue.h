// FrameQueue: one direction of a channel inside a process: a bounded queue of frames; both ends
// wait with a deadline. Thread-safe.
#ifndef TANDEM_COMMON_TRANSPORT_FRAME_QUEUE_H_
#define TANDEM_COMMON_TRANSPORT_FRAME_QUEUE_H_

#include <cstddef>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/transport/channel.h"

namespace tandem::transport {

class FrameQueue {
 public:
  explicit FrameQueue(size_t max_frames) : max_frames_(max_frames) {}

  // Waits for room. DEADLINE_EXCEEDED; UNAVAILABLE with the reason once closed. `frame` is taken
  // only on success.
  absl::Status Push(Frame&& frame, Deadline deadline);
  // The oldest frame. DEADLINE_EXCEEDED; UNAVAILABLE with the reason once closed and empty.
  absl::StatusOr<Frame> Pop(Deadline deadline);
  // Wakes all waiters. The first reason is kept.
  void Close(const std::string& reason);
  // UNAVAILABLE with the reason once closed.
  absl::Status CheckOpen();

 private:
  absl::Status ClosedStatus() const TANDEM_REQUIRES(mutex_);

  const size_t max_frames_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Frame> frames_ TANDEM_GUARDED_BY(mutex_);
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  std::string reason_ TANDEM_GUARDED_BY(mutex_);
};

// OK, or INVALID_ARGUMENT with both sizes. Shared by all channels.
absl::Status CheckFrameSize(size_t bytes, size_t max_bytes);

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_FRAME_QUEUE_H_
