// SharedMemory: a block's shared memory that records the last writer and reader of every two bytes.
// (No kernel stores single bytes there.)
//
// Two accesses of different threads, one of them a write, need a barrier between them:
// __syncthreads, or __syncwarp if both threads are in one warp. Reading unwritten bytes is an
// error.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_SHARED_MEMORY_H_
#define TANDEM_TOOLS_CUDA_EMULATION_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::emulation {

class SharedMemory {
 public:
  // In place of a thread or a warp: more than one.
  static constexpr uint32_t kMany = 0xffffffff;

  // A thread at a moment: barriers that it has passed.
  struct Access {
    uint32_t thread = 0;
    uint32_t warp = 0;
    uint32_t block_barriers = 0;
    uint32_t warp_barriers = 0;
  };

  // Clears all records; the size becomes `bytes`.
  void Reset(size_t bytes);
  size_t bytes() const { return data_.size(); }
  std::byte* data() { return data_.data(); }

  // Whether the access is valid; if not, see error(). The caller moves the bytes. `offset` and
  // `size` are even.
  bool Read(size_t offset, size_t size, const Access& by);
  bool Write(size_t offset, size_t size, const Access& by);
  // An atomic read-modify-write.
  bool Atomic(size_t offset, size_t size, const Access& by);
  const std::string& error() const { return error_; }

 private:
  struct Past {
    Access by{};
    bool any = false;
    bool atomic = false;
  };
  static constexpr size_t kUnitBytes = 2;
  struct Unit {
    uint32_t generation = 0;  // of another one: untouched
    Past write{};
    Past read{};  // thread, warp: kMany where several read between the same barriers
  };

  // Record the error; always false.
  bool OutOfBounds(size_t offset, size_t size);
  bool NeverWritten(size_t unit, const Access& by);
  bool Race(const char* what, size_t unit, const Access& past, const Access& now);

  bool InBounds(size_t offset, size_t size) const {
    return offset <= data_.size() && size <= data_.size() - offset;
  }
  Unit& At(size_t unit) {
    Unit& found = units_[unit];
    if (found.generation != generation_) found = {.generation = generation_};
    return found;
  }
  // Whether nothing orders `past` before `now`.
  static bool Collides(const Past& past, const Access& now);
  static void NoteRead(Past& read, const Access& by);

  std::vector<std::byte> data_;
  std::vector<Unit> units_;
  std::string error_;
  uint32_t generation_ = 0;
};

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_SHARED_MEMORY_H_
