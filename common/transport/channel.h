// Channel: framed bytes between two ends, in order, each call with a deadline.
//
// One thread may send while another receives; several senders or receivers on one end need a lock.
// Implementations: in-process (tests), shared-memory ring (one host), gRPC stream (between hosts).
#ifndef TANDEM_COMMON_TRANSPORT_CHANNEL_H_
#define TANDEM_COMMON_TRANSPORT_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tandem::transport {

using Frame = std::vector<uint8_t>;

class Channel {
 public:
  virtual ~Channel() = default;

  // The largest frame that Send takes. INVALID_ARGUMENT with both sizes above it.
  virtual size_t max_frame_bytes() const = 0;
  // Copies the frame out. DEADLINE_EXCEEDED if there is no room in time; UNAVAILABLE once either
  // end closed.
  virtual absl::Status Send(std::span<const uint8_t> frame, Deadline deadline) = 0;
  // The next frame. DEADLINE_EXCEEDED, or UNAVAILABLE with the reason once closed and drained.
  virtual absl::StatusOr<Frame> Receive(Deadline deadline) = 0;
  // From any thread: both ends' pending and later calls end with UNAVAILABLE naming `reason`.
  virtual void Close(const std::string& reason) = 0;
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_CHANNEL_H_
