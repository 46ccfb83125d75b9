#include "tests/common/transport/in_process_channel.h"

#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/transport/frame_queue.h"

namespace tandem::transport {
namespace {

class InProcessChannel : public Channel {
 public:
  InProcessChannel(size_t max_frame_bytes, std::shared_ptr<FrameQueue> out,
                   std::shared_ptr<FrameQueue> in)
      : max_frame_bytes_(max_frame_bytes), out_(std::move(out)), in_(std::move(in)) {}
  ~InProcessChannel() override { Close("the other end is gone"); }

  size_t max_frame_bytes() const override { return max_frame_bytes_; }

  absl::Status Send(std::span<const uint8_t> frame, Deadline deadline) override {
    NoteBlockingCall("Channel::Send");
    TANDEM_RETURN_IF_ERROR(CheckFrameSize(frame.size(), max_frame_bytes_));
    return out_->Push(Frame(frame.begin(), frame.end()), deadline);
  }

  absl::StatusOr<Frame> Receive(Deadline deadline) override {
    NoteBlockingCall("Channel::Receive");
    return in_->Pop(deadline);
  }

  void Close(const std::string& reason) override {
    out_->Close(reason);
    in_->Close(reason);
  }

 private:
  const size_t max_frame_bytes_;
  const std::shared_ptr<FrameQueue> out_;
  const std::shared_ptr<FrameQueue> in_;
};

}  // namespace

std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> MakeInProcessChannel(
    size_t max_frame_bytes, size_t max_frames) {
  auto there = std::make_shared<FrameQueue>(max_frames);
  auto back = std::make_shared<FrameQueue>(max_frames);
  return {std::make_unique<InProcessChannel>(max_frame_bytes, there, back),
          std::make_unique<InProcessChannel>(max_frame_bytes, back, there)};
}

}  // namespace tandem::transport
