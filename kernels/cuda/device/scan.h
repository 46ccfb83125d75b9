// Sums of what the threads before this one have, in order of threads. The block is one-dimensional;
// all threads take part.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SCAN_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SCAN_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// The sum over threads before this one; `total` gets that of all. `room` has kBlockReduceRoom
// values, and may be used again after a barrier.
template <typename T>
__device__ T BlockSumBefore(T value, SharedArray<T> room, T& total) {
  const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  T sum = value;  // of this lane and those before it
#pragma unroll
  for (uint32_t delta = 1; delta < kWarp; delta *= 2) {
    const T other = __shfl_up_sync(kAllLanes, sum, delta);
    if (lane >= delta) sum += other;
  }
  if (lane == kWarp - 1) room[warp] = sum;
  __syncthreads();
  T before = sum - value;
  total = 0;
  for (uint32_t w = 0; w < blockDim.x / kWarp; ++w) {
    const T of_warp = room[w];
    if (w < warp) before += of_warp;
    total += of_warp;
  }
  return before;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SCAN_H_
