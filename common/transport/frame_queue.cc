#include "common/transport/frame_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::transport {

absl::Status FrameQueue::Push(Frame&& frame, Deadline deadline) {
  {
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_until(lock, deadline.when(),
                                           [&] { return closed_ || frames_.size() < max_frames_; });
    if (closed_) return ClosedStatus();
    if (!woken) {
      return absl::DeadlineExceededError(
          absl::StrCat("channel: no room for a frame of ", frame.size(), " bytes in time"));
    }
    frames_.push_back(std::move(frame));
  }
  changed_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<Frame> FrameQueue::Pop(Deadline deadline) {
  Frame frame;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.when(), [&] { return closed_ || !frames_.empty(); });
    if (frames_.empty()) {
      if (closed_) return ClosedStatus();
      return absl::DeadlineExceededError("channel: no frame came in time");
    }
    frame = std::move(frames_.front());
    frames_.pop_front();
  }
  changed_.notify_all();
  return frame;
}

void FrameQueue::Close(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    reason_ = reason;
  }
  changed_.notify_all();
}

absl::Status FrameQueue::CheckOpen() {
  std::lock_guard lock(mutex_);
  return closed_ ? ClosedStatus() : absl::OkStatus();
}

absl::Status FrameQueue::ClosedStatus() const {
  return absl::UnavailableError(absl::StrCat("channel closed: ", reason_));
}

absl::Status CheckFrameSize(size_t bytes, size_t max_bytes) {
  if (bytes <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("channel: a frame of ", bytes, " bytes, at most ", max_bytes, " fit"));
}

}  // namespace tandem::transport
