#include "common/transport/shm_ring.h"

#include <algorithm>
#include <cstring>

namespace tandem::transport {
namespace {

constexpr uint64_t RoundUp8(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

}  // namespace

RingResult ShmRing::TryWrite(std::span<const uint8_t> frame) {
  const uint64_t used = head_ - control_->tail.load(std::memory_order_acquire);
  if (used > capacity_) return RingResult::kBroken;
  const uint64_t length = frame.size();
  const uint64_t needed = kLengthBytes + RoundUp8(length);
  if (needed > capacity_ - used) return RingResult::kWait;
  // Records and the capacity are multiples of 8, so a length never wraps.
  std::memcpy(data_ + head_ % capacity_, &length, kLengthBytes);
  CopyIn(head_ + kLengthBytes, frame);
  head_ += needed;
  control_->head.store(head_, std::memory_order_release);
  return RingResult::kDone;
}

RingResult ShmRing::TryRead(Frame& frame) {
  const uint64_t filled = control_->head.load(std::memory_order_acquire) - tail_;
  if (filled == 0) return RingResult::kWait;
  if (filled > capacity_ || filled % 8 != 0) return RingResult::kBroken;
  uint64_t length = 0;
  std::memcpy(&length, data_ + tail_ % capacity_, kLengthBytes);
  if (length > max_frame_bytes() || kLengthBytes + RoundUp8(length) > filled) {
    return RingResult::kBroken;
  }
  frame.resize(length);
  CopyOut(tail_ + kLengthBytes, frame);
  tail_ += kLengthBytes + RoundUp8(length);
  control_->tail.store(tail_, std::memory_order_release);
  return RingResult::kDone;
}

void ShmRing::CopyIn(uint64_t position, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  const uint64_t at = position % capacity_;
  const uint64_t first = std::min<uint64_t>(bytes.size(), capacity_ - at);
  std::memcpy(data_ + at, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(data_, bytes.data() + first, bytes.size() - first);
}

void ShmRing::CopyOut(uint64_t position, std::span<uint8_t> bytes) const {
  if (bytes.empty()) return;
  const uint64_t at = position % capacity_;
  const uint64_t first = std::min<uint64_t>(bytes.size(), capacity_ - at);
  std::memcpy(bytes.data(), data_ + at, first);
  if (first < bytes.size()) std::memcpy(bytes.data() + first, data_, bytes.size() - first);
}

}  // namespace tandem::transport
