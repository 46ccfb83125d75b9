// ShmRing: one direction of a shared-memory channel: a byte ring with one writer and one reader,
// usually in two processes.
//
// Memory: records of (uint64 length, bytes, padding to 8) at `position % capacity`; positions count
// all bytes ever written. Each side keeps a private copy of its position and only publishes it; the
// other side's position is checked against the capacity, so a faulty peer gives kBroken, never an
// access outside the ring. Never blocks; ShmChannel waits.
#ifndef TANDEM_COMMON_TRANSPORT_SHM_RING_H_
#define TANDEM_COMMON_TRANSPORT_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/transport/channel.h"
#include "common/transport/shared_futex.h"

namespace tandem::transport {

// In shared memory, zero at first. Writer's and reader's halves are on separate cache lines.
struct ShmRingControl {
  alignas(128) std::atomic<uint64_t> head;  // written by the writer
  SharedWord readable;                      // changes with every frame and at close
  alignas(128) std::atomic<uint64_t> tail;  // written by the reader
  SharedWord writable;                      // changes with every frame taken and at close
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "positions are shared between processes");

enum class RingResult { kDone, kWait, kBroken };

class ShmRing {
 public:
  // `capacity` bytes at `data`, a multiple of 8.
  ShmRing(ShmRingControl* control, std::byte* data, uint64_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  uint64_t max_frame_bytes() const { return capacity_ - kLengthBytes; }

  // The writer's side. kWait: no room yet. The frame is at most max_frame_bytes.
  RingResult TryWrite(std::span<const uint8_t> frame);
  // The reader's side. kWait: empty.
  RingResult TryRead(Frame& frame);

  SharedWord& readable() { return control_->readable; }
  SharedWord& writable() { return control_->writable; }

 private:
  static constexpr uint64_t kLengthBytes = sizeof(uint64_t);

  void CopyIn(uint64_t position, std::span<const uint8_t> bytes);
  void CopyOut(uint64_t position, std::span<uint8_t> bytes) const;

  ShmRingControl* const control_;
  std::byte* const data_;
  const uint64_t capacity_;
  uint64_t head_ = 0;  // the writer's own
  uint64_t tail_ = 0;  // the reader's own
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_SHM_RING_H_
