#include "common/transport/queue_channel.h"

#include <utility>

#include "common/base/status.h"
#include "common/base/step_guard.h"

namespace tandem::transport {

QueueChannel::QueueChannel(size_t max_frame_bytes, size_t max_frames, Sink sink, CloseHook on_close)
    : max_frame_bytes_(max_frame_bytes),
      sink_(std::move(sink)),
      on_close_(std::move(on_close)),
      incoming_(max_frames) {}

QueueChannel::~QueueChannel() { Close("the other end is gone"); }

absl::Status QueueChannel::Send(std::span<const uint8_t> frame, Deadline deadline) {
  NoteBlockingCall("Channel::Send");
  TANDEM_RETURN_IF_ERROR(CheckFrameSize(frame.size(), max_frame_bytes_));
  TANDEM_RETURN_IF_ERROR(incoming_.CheckOpen());
  absl::Status sent = sink_(frame, deadline);
  // Errors of the closing stream are ignored in favour of the close reason.
  if (!sent.ok()) TANDEM_RETURN_IF_ERROR(incoming_.CheckOpen());
  return sent;
}

absl::StatusOr<Frame> QueueChannel::Receive(Deadline deadline) {
  NoteBlockingCall("Channel::Receive");
  return incoming_.Pop(deadline);
}

void QueueChannel::Close(const std::string& reason) {
  const bool was_open = incoming_.CheckOpen().ok();
  incoming_.Close(reason);
  if (was_open && !hook_called_.exchange(true)) on_close_(reason);
}

absl::Status QueueChannel::Deliver(Frame frame, Deadline deadline) {
  TANDEM_RETURN_IF_ERROR(CheckFrameSize(frame.size(), max_frame_bytes_));
  return incoming_.Push(std::move(frame), deadline);
}

void QueueChannel::PeerClosed(const std::string& reason) { incoming_.Close(reason); }

}  // namespace tandem::transport
