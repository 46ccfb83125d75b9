// Exclusive prefix sum over the threads of a block. The block is one-dimensional; all threads take
// part.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SCAN_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SCAN_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// Sum over the threads before this one, and over all threads.
template <typename T>
struct Scan {
  T before;
  T total;
};

// `room` has kBlockReduceRoom values; the function puts the barrier between two uses of the same
// room.
template <typename T>
__device__ Scan<T> BlockScan(T value, SharedArray<T> room) {
  const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  T sum = value;
#pragma unroll
  for (uint32_t delta = 1; delta < kWarp; delta *= 2) {
    const T other = __shfl_up_sync(kAllLanes, sum, delta);
    if (lane >= delta) sum += other;
  }
  const T of_lanes = __shfl_up_sync(kAllLanes, sum, 1);
  __syncthreads();  // the room's previous contents have been read
  if (lane == kWarp - 1) room[warp] = sum;
  __syncthreads();
  T of_warps = lane < blockDim.x / kWarp ? static_cast<T>(room[lane]) : T(0);
#pragma unroll
  for (uint32_t delta = 1; delta < kWarp; delta *= 2) {
    const T other = __shfl_up_sync(kAllLanes, of_warps, delta);
    if (lane >= delta) of_warps += other;
  }
  const T total = __shfl_sync(kAllLanes, of_warps, kWarp - 1);
  const T of_earlier_warps = __shfl_sync(kAllLanes, of_warps, warp > 0 ? warp - 1 : 0);
  return {(warp > 0 ? of_earlier_warps : T(0)) + (lane > 0 ? of_lanes : T(0)), total};
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SCAN_H_
