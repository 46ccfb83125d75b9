// FrameQueue: one direction of a channel inside a process: a bounded queue of frames that both ends
// wait on with a deadline. Thread-safe.
#ifndef TANDEM_COMMON_TRANSPORT_FRAME_QUEUE_H_
#define TANDEM_COMMON_TRANSPORT_FRAME_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
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
  // Wakes everyone. The first reason stays.
  void Close(const std::string& reason);
  // UNAVAILABLE with the reason once closed.
  absl::Status CheckOpen();

 private:
  absl::Status ClosedStatus() const;  // needs mutex_

  const size_t max_frames_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> frames_;  // guarded by mutex_
  bool closed_ = false;       // guarded by mutex_
  std::string reason_;        // guarded by mutex_
};

// OK, or INVALID_ARGUMENT with both sizes. Shared by all channels.
absl::Status CheckFrameSize(size_t bytes, size_t max_bytes);

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_FRAME_QUEUE_H_
