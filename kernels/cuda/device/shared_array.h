// Shared memory of a block: SharedArena allocates arrays from the launch's dynamic shared memory,
// in order.
//
//   SharedArena arena;
//   SharedArray<float> tile = arena.Take<float>(rows * cols);   // every thread takes the same
//   tile[i] = x;  ...  float y = tile[i];  uint4 four = tile.As<uint4>()[i / 4];
//   host: the launch asks for SharedBytes<float>(rows * cols) + ...
//
// On a GPU this is plain pointers. Under emulation every access is checked: bounds, values never
// written, and races (tools/cuda_emulation/shared_memory.h). Arrays begin at multiples of 16 bytes.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SHARED_ARRAY_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SHARED_ARRAY_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#ifdef TANDEM_CUDA_EMULATION
#include "tools/cuda_emulation/shared_access.h"
#endif

namespace tandem::kernels::cuda {

// Bytes that Take<T>(count) uses.
template <typename T>
constexpr size_t SharedBytes(size_t count) {
  return (count * sizeof(T) + 15) / 16 * 16;
}

#ifdef TANDEM_CUDA_EMULATION

using emulation::SharedArray;

class SharedArena {
 public:
  template <typename T>
  SharedArray<T> Take(uint32_t count) {
    const size_t begin = used_;
    used_ += SharedBytes<T>(count);
    return SharedArray<T>(begin, count);
  }

 private:
  size_t used_ = 0;
};

#else

extern __shared__ __align__(16) unsigned char tandem_shared[];

template <typename T>
class SharedArray {
 public:
  __device__ explicit SharedArray(T* data) : data_(data) {}
  __device__ T& operator[](uint32_t i) const { return data_[i]; }
  __device__ SharedArray operator+(uint32_t offset) const { return SharedArray(data_ + offset); }
  // The same bytes as values of another type; both must be aligned for it.
  template <typename U>
  __device__ SharedArray<U> As() const {
    return SharedArray<U>(reinterpret_cast<U*>(data_));
  }
  __device__ T AtomicAdd(uint32_t i, T value) const { return atomicAdd(data_ + i, value); }
  __device__ T AtomicMax(uint32_t i, T value) const { return atomicMax(data_ + i, value); }
  // For instructions that take addresses; see async_copy.h.
  __device__ T* data() const { return data_; }

 private:
  T* data_;
};

class SharedArena {
 public:
  template <typename T>
  __device__ SharedArray<T> Take(uint32_t count) {
    T* const data = reinterpret_cast<T*>(tandem_shared + used_);
    used_ += SharedBytes<T>(count);
    return SharedArray<T>(data);
  }

 private:
  size_t used_ = 0;
};

#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SHARED_ARRAY_H_
