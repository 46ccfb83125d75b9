#include "tools/cuda_emulation/shared_memory.h"

#include "absl/strings/str_cat.h"

namespace tandem::emulation {

void SharedMemory::Reset(size_t bytes) {
  ++generation_;
  data_.assign(bytes, std::byte{0xff});
  const size_t units = (bytes + kUnitBytes - 1) / kUnitBytes;
  if (units_.size() < units) units_.resize(units);
}

bool SharedMemory::OutOfBounds(size_t offset, size_t size) {
  error_ =
      absl::StrCat("shared memory of ", data_.size(), " bytes accessed at ", offset, ", +", size);
  return false;
}

bool SharedMemory::NeverWritten(size_t unit, const Access& by) {
  error_ = absl::StrCat("shared memory read before it was written: byte ", unit * kUnitBytes,
                        " by thread ", by.thread);
  return false;
}

bool SharedMemory::Race(const char* what, size_t unit, const Access& past, const Access& now) {
  const std::string others =
      past.thread == kMany ? std::string("several threads") : absl::StrCat("thread ", past.thread);
  error_ = absl::StrCat("race in shared memory: ", what, " byte ", unit * kUnitBytes, " by thread ",
                        now.thread, " without a barrier after ", others);
  return false;
}

bool SharedMemory::Collides(const Past& past, const Access& now) {
  if (!past.any || past.by.thread == now.thread) return false;
  if (past.by.block_barriers != now.block_barriers) return false;
  return past.by.warp != now.warp || past.by.warp_barriers == now.warp_barriers;
}

void SharedMemory::NoteRead(Past& read, const Access& by) {
  const bool same_moment = read.any && read.by.block_barriers == by.block_barriers;
  const bool same_warp = read.by.warp == by.warp;
  if (!same_moment || (same_warp && read.by.warp_barriers != by.warp_barriers)) {
    read = {.by = by, .any = true};
    return;
  }
  if (read.by.thread != by.thread) read.by.thread = kMany;
  if (!same_warp) read.by.warp = kMany;
}

bool SharedMemory::Read(size_t offset, size_t size, const Access& by) {
  if (!InBounds(offset, size)) return OutOfBounds(offset, size);
  for (size_t at = offset / kUnitBytes; at < (offset + size) / kUnitBytes; ++at) {
    Unit& unit = At(at);
    if (!unit.write.any) return NeverWritten(at, by);
    if (Collides(unit.write, by)) return Race("read of", at, unit.write.by, by);
    NoteRead(unit.read, by);
  }
  return true;
}

bool SharedMemory::Write(size_t offset, size_t size, const Access& by) {
  if (!InBounds(offset, size)) return OutOfBounds(offset, size);
  for (size_t at = offset / kUnitBytes; at < (offset + size) / kUnitBytes; ++at) {
    Unit& unit = At(at);
    if (Collides(unit.write, by)) return Race("write of", at, unit.write.by, by);
    if (Collides(unit.read, by)) return Race("write of", at, unit.read.by, by);
    unit.write = {.by = by, .any = true};
    unit.read = {};
  }
  return true;
}

bool SharedMemory::Atomic(size_t offset, size_t size, const Access& by) {
  if (!InBounds(offset, size)) return OutOfBounds(offset, size);
  for (size_t at = offset / kUnitBytes; at < (offset + size) / kUnitBytes; ++at) {
    Unit& unit = At(at);
    Past& write = unit.write;
    if (!write.any) return NeverWritten(at, by);
    if (!write.atomic && Collides(write, by)) return Race("atomic of", at, write.by, by);
    if (Collides(unit.read, by)) return Race("atomic of", at, unit.read.by, by);
    const bool shared = write.atomic && Collides(write, by);
    const bool same_warp = write.by.warp == by.warp;
    write = {.by = by, .any = true, .atomic = true};
    // After atomics by several threads no thread owns the bytes until the next barrier.
    if (shared) write.by.thread = kMany;
    if (shared && !same_warp) write.by.warp = kMany;
  }
  return true;
}

}  // namespace tandem::emulation
