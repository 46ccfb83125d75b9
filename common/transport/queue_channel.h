// QueueChannel: a Channel over a stream that is driven elsewhere, such as a gRPC stream: Send
// hands frames to a sink that writes them to the stream; the stream's reader delivers received
// frames. Independent of the kind of stream.
//
//   QueueChannel channel(max_frame_bytes, max_frames, sink, on_close);
//   // reader: channel.Deliver(frame, deadline) for each frame; channel.PeerClosed(reason) when the
//   stream ends
#ifndef TANDEM_COMMON_TRANSPORT_QUEUE_CHANNEL_H_
#define TANDEM_COMMON_TRANSPORT_QUEUE_CHANNEL_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "common/transport/channel.h"
#include "common/transport/frame_queue.h"

namespace tandem::transport {

class QueueChannel : public Channel {
 public:
  // Writes one frame to the stream, within the deadline; the frame is valid during the call.
  // DEADLINE_EXCEEDED or UNAVAILABLE. Called by one thread at a time, as Send is.
  using Sink = std::function<absl::Status(std::span<const uint8_t>, Deadline)>;
  // Ends the stream; called once, by the first Close and never by PeerClosed. It must make a
  // waiting Sink return.
  using CloseHook = std::function<void(const std::string& reason)>;

  // At most `max_frames` delivered frames wait for Receive.
  QueueChannel(size_t max_frame_bytes, size_t max_frames, Sink sink, CloseHook on_close);
  ~QueueChannel() override;

  size_t max_frame_bytes() const override { return max_frame_bytes_; }
  absl::Status Send(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<Frame> Receive(Deadline deadline) override;
  void Close(const std::string& reason) override;

  // --- for the stream's reader ---
  // Hands a frame to Receive; waits for room until `deadline` (a past one never blocks).
  // INVALID_ARGUMENT for one that is too big, DEADLINE_EXCEEDED, UNAVAILABLE once closed.
  absl::Status Deliver(Frame frame, Deadline deadline);
  // The stream ended: pending and later calls end with `reason`, Receive after the delivered
  // frames.
  void PeerClosed(const std::string& reason);

 private:
  const size_t max_frame_bytes_;
  const Sink sink_;
  const CloseHook on_close_;
  FrameQueue incoming_;
  std::atomic<bool> hook_called_{false};
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_QUEUE_CHANNEL_H_
