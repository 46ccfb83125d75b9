// What ranks of several hosts send each other: frames of a header and a payload, over one
// connection per pair. Plain data, little-endian.
#ifndef TANDEM_WORKER_COMM_TCP_FRAME_H_
#define TANDEM_WORKER_COMM_TCP_FRAME_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/comm/collective.h"

namespace tandem::worker {

static_assert(std::endian::native == std::endian::little, "frames are sent as they are in memory");

struct FrameHeader {
  // Beside the CollectiveKinds. A hello has the sender's rank in `root` and the rank that it wants
  // to reach in `bytes`; an abort has its status code in `root` and its message as payload.
  static constexpr uint32_t kHello = 100;
  static constexpr uint32_t kAbort = 101;

  uint32_t kind = 0;
  uint32_t root = 0;
  uint64_t bytes = 0;  // of the collective, as CollectiveTag's
  uint64_t payload_bytes = 0;

  static FrameHeader Of(const CollectiveTag& tag, size_t payload_bytes) {
    return {static_cast<uint32_t>(tag.kind), tag.root, tag.bytes, payload_bytes};
  }
  CollectiveTag tag() const { return {static_cast<CollectiveKind>(kind), root, bytes}; }

  std::span<const std::byte> wire() const { return std::as_bytes(std::span(this, 1)); }
  std::span<std::byte> wire() { return std::as_writable_bytes(std::span(this, 1)); }
};
static_assert(sizeof(FrameHeader) == 24);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_TCP_FRAME_H_
