#include "common/transport/shm_channel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/transport/frame_queue.h"

namespace tandem::transport {

// The start of the segment; the two rings follow at kDataOffset. All zero at first but for the
// header.
struct ShmChannelLayout {
  enum CloseState : uint32_t { kOpen = 0, kClosing = 1, kClosed = 2 };

  ShmHeader header;
  uint64_t capacity;                  // of each ring; written before the address is known
  std::atomic<int32_t> attached_pid;  // 0: not attached yet
  alignas(128) std::atomic<uint32_t> close_state;
  uint32_t reason_bytes;  // valid once kClosed
  char reason[232];
  ShmRingControl rings[2];  // [0]: creator to peer
};

namespace {

constexpr uint32_t kKind = 1;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kDataOffset = kPage;
static_assert(sizeof(ShmChannelLayout) <= kDataOffset, "the rings begin on the second page");
static_assert(std::atomic<int32_t>::is_always_lock_free, "pids are shared between processes");

ShmChannelLayout* LayoutOf(const ShmSegment& segment) {
  return reinterpret_cast<ShmChannelLayout*>(segment.data());
}

}  // namespace

ShmChannel::ShmChannel(std::shared_ptr<ShmSegment> segment, uint64_t capacity, int side,
                       Duration spin)
    : segment_(std::move(segment)),
      layout_(LayoutOf(*segment_)),
      spin_(spin),
      policy_(SpinPolicy::For(2, spin, Duration::zero())),
      out_(&layout_->rings[side], segment_->data() + kDataOffset + side * capacity, capacity),
      in_(&layout_->rings[1 - side], segment_->data() + kDataOffset + (1 - side) * capacity,
          capacity) {}

ShmChannel::~ShmChannel() { Close("the other end is gone"); }

absl::StatusOr<ShmChannel::Created> ShmChannel::Create(const ShmChannelOptions& options,
                                                       Epoch epoch) {
  const uint64_t capacity =
      (std::max<uint64_t>(options.capacity_bytes, 1) + kPage - 1) / kPage * kPage;
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<ShmSegment> segment,
                          ShmSegment::Create(kDataOffset + 2 * capacity, kKind, epoch));
  LayoutOf(*segment)->capacity = capacity;
  Created created;
  created.address = segment->address();
  created.channel.reset(new ShmChannel(std::move(segment), capacity, 0, options.spin));
  return created;
}

absl::StatusOr<std::unique_ptr<ShmChannel>> ShmChannel::Attach(const std::string& address,
                                                               Epoch epoch, Duration spin) {
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<ShmSegment> segment,
                          ShmSegment::Open(address, kKind, epoch));
  return Join(std::move(segment), spin);
}

absl::StatusOr<std::unique_ptr<ShmChannel>> ShmChannel::AttachHere() {
  return Join(segment_, spin_);
}

absl::StatusOr<std::unique_ptr<ShmChannel>> ShmChannel::Join(std::shared_ptr<ShmSegment> segment,
                                                             Duration spin) {
  ShmChannelLayout* layout = LayoutOf(*segment);
  const uint64_t capacity = layout->capacity;
  if (segment->bytes() < kDataOffset || capacity == 0 || capacity % 8 != 0 ||
      capacity > (segment->bytes() - kDataOffset) / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("channel: rings of ", capacity, " bytes in a segment of ", segment->bytes()));
  }
  int32_t attached = 0;
  if (!layout->attached_pid.compare_exchange_strong(attached, getpid(),
                                                    std::memory_order_acq_rel)) {
    return absl::FailedPreconditionError(
        absl::StrCat("channel: process ", attached, " has attached before"));
  }
  return std::unique_ptr<ShmChannel>(new ShmChannel(std::move(segment), capacity, 1, spin));
}

absl::Status ShmChannel::Send(std::span<const uint8_t> frame, Deadline deadline) {
  NoteBlockingCall("Channel::Send");
  TANDEM_RETURN_IF_ERROR(CheckFrameSize(frame.size(), max_frame_bytes()));
  while (true) {
    const uint32_t seen = out_.writable().value.load(std::memory_order_acquire);
    TANDEM_RETURN_IF_ERROR(CheckOpen());
    switch (out_.TryWrite(frame)) {
      case RingResult::kDone:
        AddAndNotify(out_.readable(), 1);
        return absl::OkStatus();
      case RingResult::kBroken:
        return Broken();
      case RingResult::kWait:
        break;
    }
    if (deadline.Passed()) {
      return absl::DeadlineExceededError(
          absl::StrCat("channel: no room for a frame of ", frame.size(), " bytes in time"));
    }
    WaitWhile(out_.writable(), seen, policy_, deadline);
  }
}

absl::StatusOr<Frame> ShmChannel::Receive(Deadline deadline) {
  NoteBlockingCall("Channel::Receive");
  Frame frame;
  while (true) {
    const uint32_t seen = in_.readable().value.load(std::memory_order_acquire);
    // Read before the ring, so that frames sent before the close are still received.
    const absl::Status open = CheckOpen();
    switch (in_.TryRead(frame)) {
      case RingResult::kDone:
        AddAndNotify(in_.writable(), 1);
        return frame;
      case RingResult::kBroken:
        return Broken();
      case RingResult::kWait:
        break;
    }
    TANDEM_RETURN_IF_ERROR(open);
    if (deadline.Passed()) return absl::DeadlineExceededError("channel: no frame came in time");
    WaitWhile(in_.readable(), seen, policy_, deadline);
  }
}

void ShmChannel::Close(const std::string& reason) {
  uint32_t expected = ShmChannelLayout::kOpen;
  if (layout_->close_state.compare_exchange_strong(expected, ShmChannelLayout::kClosing,
                                                   std::memory_order_acq_rel)) {
    layout_->reason_bytes = std::min(reason.size(), sizeof(layout_->reason));
    std::memcpy(layout_->reason, reason.data(), layout_->reason_bytes);
    layout_->close_state.store(ShmChannelLayout::kClosed, std::memory_order_seq_cst);
  }
  for (ShmRingControl& ring : layout_->rings) {
    AddAndNotify(ring.readable, 1);
    AddAndNotify(ring.writable, 1);
  }
}

absl::Status ShmChannel::CheckOpen() const {
  if (layout_->close_state.load(std::memory_order_acquire) != ShmChannelLayout::kClosed) {
    return absl::OkStatus();
  }
  const size_t bytes = std::min<size_t>(layout_->reason_bytes, sizeof(layout_->reason));
  return absl::UnavailableError(
      absl::StrCat("channel closed: ", absl::string_view(layout_->reason, bytes)));
}

absl::Status ShmChannel::Broken() {
  Close("the other end broke the ring");
  return absl::InternalError("channel: the other end broke the ring");
}

}  // namespace tandem::transport
