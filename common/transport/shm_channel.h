// ShmChannel: a channel between two processes of one host over one memfd segment: a ring in each
// direction.
//
//   auto made = ShmChannel::Create({.capacity_bytes = 4 << 20}, epoch);   // here
//   auto peer = ShmChannel::Attach(made->address, epoch);                 // there, once; the
//   address came over the control stream
//
// A wait spins for some microseconds, then parks. A dead or stuck peer is detected at the deadline;
// the control plane, which may detect it earlier, calls Close. Invalid data from the peer closes
// the channel with INTERNAL.
#ifndef TANDEM_COMMON_TRANSPORT_SHM_CHANNEL_H_
#define TANDEM_COMMON_TRANSPORT_SHM_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/transport/channel.h"
#include "common/transport/shared_futex.h"
#include "common/transport/shm_ring.h"
#include "common/transport/shm_segment.h"

namespace tandem::transport {

struct ShmChannelLayout;

struct ShmChannelOptions {
  // Of each direction, rounded up to a multiple of 4096. The largest frame takes 8 bytes less.
  size_t capacity_bytes = size_t{4} << 20;
  // How long a wait polls before it parks; zero if there is only one core.
  Duration spin = std::chrono::microseconds(20);
};

class ShmChannel : public Channel {
 public:
  struct Created;

  static absl::StatusOr<Created> Create(const ShmChannelOptions& options, Epoch epoch);
  // The other end. Errors of ShmSegment::Open; FAILED_PRECONDITION when another process has
  // attached before.
  static absl::StatusOr<std::unique_ptr<ShmChannel>> Attach(
      const std::string& address, Epoch epoch, Duration spin = ShmChannelOptions().spin);
  // Attaches within this process over the same mapping, so that thread checkers see both ends
  // access the same bytes.
  absl::StatusOr<std::unique_ptr<ShmChannel>> AttachHere();

  // Closes.
  ~ShmChannel() override;

  size_t max_frame_bytes() const override { return out_.max_frame_bytes(); }
  absl::Status Send(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<Frame> Receive(Deadline deadline) override;
  void Close(const std::string& reason) override;

  // For Attach elsewhere.
  std::string address() const { return segment_->address(); }

 private:
  // `side` 0 is the creator's.
  ShmChannel(std::shared_ptr<ShmSegment> segment, uint64_t capacity, int side, Duration spin);
  static absl::StatusOr<std::unique_ptr<ShmChannel>> Join(std::shared_ptr<ShmSegment> segment,
                                                          Duration spin);

  // UNAVAILABLE with the reason once closed.
  absl::Status CheckOpen() const;
  absl::Status Broken();

  const std::shared_ptr<ShmSegment> segment_;
  ShmChannelLayout* const layout_;
  const Duration spin_;
  const SpinPolicy policy_;
  ShmRing out_;
  ShmRing in_;
};

struct ShmChannel::Created {
  std::unique_ptr<ShmChannel> channel;
  std::string address;
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_SHM_CHANNEL_H_
