// Vectorised float accesses: four at a time if addresses and lengths allow 16 bytes, else one.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_FLOATS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_FLOATS_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>

namespace tandem::kernels::cuda {

template <uint32_t kWidth>
struct alignas(kWidth * sizeof(float)) Floats {
  float at[kWidth];
};

template <uint32_t kWidth>
__device__ Floats<kWidth> Load(const float* from) {
  return *reinterpret_cast<const Floats<kWidth>*>(from);
}
template <uint32_t kWidth>
__device__ void Store(float* to, const Floats<kWidth>& values) {
  *reinterpret_cast<Floats<kWidth>*>(to) = values;
}

// Whether arrays whose rows are `strides` apart (null arrays: any) can be read four at a time.
inline bool InFours(std::initializer_list<uint32_t> strides,
                    std::initializer_list<const void*> arrays) {
  for (const uint32_t stride : strides) {
    if (stride % 4 != 0) return false;
  }
  for (const void* array : arrays) {
    if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
  }
  return true;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_FLOATS_H_
