#include "common/transport/frame_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::transport {

absl::Status FrameQueue::Push(Frame&& frame, Deadline deadline) {
  {
    MutexLock lock(mutex_);
    const bool woken = changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) {
      return closed_ || frames_.size() < max_frames_;
    });
    if (closed_) return ClosedStatus();
    if (!woken) {
      return absl::DeadlineExceededError(
          absl::StrCat("channel: no room for a frame of ", frame.size(), " bytes in time"));
    }
    frames_.push_back(std::move(frame));
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<Frame> FrameQueue::Pop(Deadline deadline) {
  Frame frame;
  {
    MutexLock lock(mutex_);
    changed_.Wait(lock, deadline,
                  [&]() TANDEM_REQUIRES(mutex_) { return closed_ || !frames_.empty(); });
    if (frames_.empty()) {
      if (closed_) return ClosedStatus();
      return absl::DeadlineExceededError("channel: no frame came in time");
    }
    frame = std::move(frames_.front());
    frames_.pop_front();
  }
  changed_.NotifyAll();
  return frame;
}

void FrameQueue::Close(const std::string& reason) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    reason_ = reason;
  }
  changed_.NotifyAll();
}

absl::Status FrameQueue::CheckOpen() {
  MutexLock lock(mutex_);
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
