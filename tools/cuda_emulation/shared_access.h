// SharedArray under emulation: every read and write goes through SharedMemory's checks. Same
// interface as the one for GPUs (kernels/cuda/device/shared_array.h).
#ifndef TANDEM_TOOLS_CUDA_EMULATION_SHARED_ACCESS_H_
#define TANDEM_TOOLS_CUDA_EMULATION_SHARED_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "tools/cuda_emulation/execution.h"

namespace tandem::emulation {

// Ends the kernel with an error if an access is invalid.
inline void Insist(bool sound) {
  if (!sound) Fail(Shared().error());
}

// One element: reads when it is converted, writes when it is assigned to.
template <typename T>
class SharedElement {
 public:
  explicit SharedElement(size_t offset) : offset_(offset) {}

  operator T() const {
    Insist(Shared().Read(offset_, sizeof(T), Me()));
    T value;
    std::memcpy(&value, Shared().data() + offset_, sizeof(T));
    return value;
  }
  const SharedElement& operator=(const T& value) const {
    Insist(Shared().Write(offset_, sizeof(T), Me()));
    std::memcpy(Shared().data() + offset_, &value, sizeof(T));
    return *this;
  }
  const SharedElement& operator=(const SharedElement& other) const {
    return *this = static_cast<T>(other);
  }
  SharedElement(const SharedElement&) = default;
  const SharedElement& operator+=(const T& value) const { return *this = T(*this) + value; }
  const SharedElement& operator-=(const T& value) const { return *this = T(*this) - value; }
  const SharedElement& operator*=(const T& value) const { return *this = T(*this) * value; }

 private:
  const size_t offset_;
};

template <typename T>
class SharedArray {
  static_assert(sizeof(T) % 2 == 0, "SharedMemory tells bytes apart two by two");

 public:
  SharedArray(size_t begin, size_t count) : begin_(begin), count_(count) {}

  SharedElement<T> operator[](uint32_t i) const {
    if (i >= count_) {
      Fail("shared array of " + std::to_string(count_) + " elements indexed at " +
           std::to_string(i));
    }
    return SharedElement<T>(begin_ + i * sizeof(T));
  }
  SharedArray operator+(uint32_t offset) const {
    if (offset > count_) Fail("shared array: a part that begins beyond its end");
    return SharedArray(begin_ + offset * sizeof(T), count_ - offset);
  }
  // The offset of an element in the block's shared memory, which begins at a multiple of 16.
  size_t OffsetOf(uint32_t i) const { return begin_ + i * sizeof(T); }
  template <typename U>
  SharedArray<U> As() const {
    if (begin_ % alignof(U) != 0) Fail("shared array: a misaligned view");
    return SharedArray<U>(begin_, count_ * sizeof(T) / sizeof(U));
  }
  T AtomicAdd(uint32_t i, T value) const {
    return Atomic(i, [&](T old) { return old + value; });
  }
  T AtomicMax(uint32_t i, T value) const {
    return Atomic(i, [&](T old) { return old > value ? old : value; });
  }

 private:
  template <typename Change>
  T Atomic(uint32_t i, Change change) const {
    const size_t offset = begin_ + i * sizeof(T);
    if (i >= count_) Fail("shared array: an atomic beyond its end");
    Insist(Shared().Atomic(offset, sizeof(T), Me()));
    T old;
    std::memcpy(&old, Shared().data() + offset, sizeof(T));
    const T changed = change(old);
    std::memcpy(Shared().data() + offset, &changed, sizeof(T));
    return old;
  }

  size_t begin_;
  size_t count_;
};

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_SHARED_ACCESS_H_
