// ForEach: a block's threads iterate over an array, each with several loads in flight.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_FOR_EACH_H_
#define TANDEM_KERNELS_CUDA_DEVICE_FOR_EACH_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::kernels::cuda {

// Calls f(i, x[i]) for all i < n, each by one, always the same, thread of the one-dimensional
// block. `x` is an array of floats, or anything else that has them by index.
template <uint32_t kThreads, typename Floats, typename F>
__device__ void ForEach(const Floats& x, uint32_t n, F f) {
  constexpr uint32_t kLoads = 8;
  for (uint32_t begin = threadIdx.x; begin < n; begin += kLoads * kThreads) {
    float values[kLoads];
#pragma unroll
    for (uint32_t j = 0; j < kLoads; ++j) {
      const uint32_t i = begin + j * kThreads;
      values[j] = i < n ? x[i] : 0.0f;
    }
#pragma unroll
    for (uint32_t j = 0; j < kLoads; ++j) {
      const uint32_t i = begin + j * kThreads;
      if (i < n) f(i, values[j]);
    }
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_FOR_EACH_H_
