// Arena: activations of one step: a bump allocator over memory allocated once.
//
// The plan pass runs the same Take calls on a counting arena, whose pointers are never read, and
// records the peak. Buffers are 64-byte aligned. Rewind to a mark releases later buffers. One
// thread.
#ifndef TANDEM_WORKER_LAYERS_ARENA_H_
#define TANDEM_WORKER_LAYERS_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"

namespace tandem::worker {

class Arena {
 public:
  // A counting arena. Activations are of `type`.
  explicit Arena(tensor::Type type) : type_(type) {}
  Arena(tensor::Type type, std::byte* base, size_t bytes)
      : type_(type), base_(base), bytes_(bytes) {}

  // Room for `count` values of T. A counting arena's pointers must not be read.
  template <typename T>
  T* Take(size_t count) {
    return reinterpret_cast<T*>(TakeBytes(count * sizeof(T)));
  }
  // Room for `count` values of activations.
  float* TakeActivations(size_t count) {
    return reinterpret_cast<float*>(TakeBytes(tensor::RowBytes(type_, count)));
  }

  size_t used() const { return used_; }
  size_t peak() const { return peak_; }
  // Releases everything taken since `used` was `mark`.
  void Rewind(size_t mark) { used_ = mark; }

 private:
  static constexpr size_t kAlignment = 64;

  bool counting() const { return base_ == nullptr; }

  uintptr_t TakeBytes(size_t bytes) {
    const size_t begin = used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    peak_ = std::max(peak_, used_);
    TANDEM_CHECK(counting() || used_ <= bytes_)
        << "arena of " << bytes_ << " bytes needs " << used_;
    return reinterpret_cast<uintptr_t>(base_) + begin;
  }

  tensor::Type type_;
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
  size_t used_ = 0;
  size_t peak_ = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LAYERS_ARENA_H_
