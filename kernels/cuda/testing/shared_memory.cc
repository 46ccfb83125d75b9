#include "kernels/cuda/testing/shared_memory.h"

#include "absl/strings/str_cat.h"

namespace tandem::emulation {
namespace {

std::string Race(const char* what, size_t offset, const SharedMemory::Access& past,
                 const SharedMemory::Access& now) {
  const std::string others = past.thread == SharedMemory::kMany
                                 ? std::string("several threads")
                                 : absl::StrCat("thread ", past.thread);
  return absl::StrCat("race in shared memory: ", what, " byte ", offset, " by thread ", now.thread,
                      " without a barrier after ", others);
}

}  // namespace

void SharedMemory::Reset(size_t bytes) {
  ++generation_;
  data_.assign(bytes, std::byte{0xff});
  if (bytes_.size() < bytes) bytes_.resize(bytes);
}

std::string SharedMemory::OutOfBounds(size_t offset, size_t size) const {
  if (offset <= data_.size() && size <= data_.size() - offset) return "";
  return absl::StrCat("shared memory of ", data_.size(), " bytes accessed at ", offset, ", +",
                      size);
}

SharedMemory::Byte& SharedMemory::At(size_t offset) {
  Byte& byte = bytes_[offset];
  if (byte.generation != generation_) byte = {.generation = generation_};
  return byte;
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

std::string SharedMemory::Read(size_t offset, size_t size, const Access& by) {
  if (std::string error = OutOfBounds(offset, size); !error.empty()) return error;
  for (size_t at = offset; at < offset + size; ++at) {
    Byte& byte = At(at);
    if (!byte.write.any) {
      return absl::StrCat("shared memory read before it was written: byte ", at, " by thread ",
                          by.thread);
    }
    if (Collides(byte.write, by)) return Race("read of", at, byte.write.by, by);
    NoteRead(byte.read, by);
  }
  return "";
}

std::string SharedMemory::Write(size_t offset, size_t size, const Access& by) {
  if (std::string error = OutOfBounds(offset, size); !error.empty()) return error;
  for (size_t at = offset; at < offset + size; ++at) {
    Byte& byte = At(at);
    if (Collides(byte.write, by)) return Race("write of", at, byte.write.by, by);
    if (Collides(byte.read, by)) return Race("write of", at, byte.read.by, by);
    byte.write = {.by = by, .any = true};
    byte.read = {};
  }
  return "";
}

std::string SharedMemory::Atomic(size_t offset, size_t size, const Access& by) {
  if (std::string error = OutOfBounds(offset, size); !error.empty()) return error;
  for (size_t at = offset; at < offset + size; ++at) {
    Byte& byte = At(at);
    if (!byte.write.any) {
      return absl::StrCat("shared memory read before it was written: byte ", at, " by thread ",
                          by.thread);
    }
    if (!byte.write.atomic && Collides(byte.write, by))
      return Race("atomic of", at, byte.write.by, by);
    if (Collides(byte.read, by)) return Race("atomic of", at, byte.read.by, by);
    const bool shared = byte.write.atomic && Collides(byte.write, by);
    const bool same_warp = byte.write.by.warp == by.warp;
    byte.write = {.by = by, .any = true, .atomic = true};
    // After atomics of several threads no thread owns the byte until the next barrier.
    if (shared) byte.write.by.thread = kMany;
    if (shared && !same_warp) byte.write.by.warp = kMany;
  }
  return "";
}

}  // namespace tandem::emulation
