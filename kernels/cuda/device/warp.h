// Reductions over a warp and over a block; all lanes, or all threads, take part and get the result.
//
// Sums use a fixed tree, so a block's result depends only on its inputs and the number of threads.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_WARP_H_
#define TANDEM_KERNELS_CUDA_DEVICE_WARP_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct AddOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct MaxOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Over each group of kLanes consecutive lanes, a power of two.
template <uint32_t kLanes, typename T, typename Op>
__device__ __forceinline__ T LanesReduce(T value, Op op) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    value = op(value, __shfl_xor_sync(kAllLanes, value, mask));
  }
  return value;
}
template <typename T, typename Op>
__device__ T WarpReduce(T value, Op op) {
  return LanesReduce<kWarp>(value, op);
}
template <typename T>
__device__ T WarpSum(T value) {
  return WarpReduce(value, AddOp());
}
template <typename T>
__device__ T WarpMax(T value) {
  return WarpReduce(value, MaxOp());
}

// Room that BlockReduce needs in shared memory: one value per warp.
inline constexpr uint32_t kBlockReduceRoom = 32;

// `room` has kBlockReduceRoom values; the function puts the barrier between two uses of the same
// room. The block is one-dimensional.
template <typename T, typename Op>
__device__ T BlockReduce(T value, Op op, SharedArray<T> room) {
  const uint32_t warps = blockDim.x / kWarp;
  value = WarpReduce(value, op);
  if (warps == 1) return value;
  __syncthreads();  // the room's previous contents have been read
  if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = value;
  __syncthreads();
  T result = room[0];
  for (uint32_t i = 1; i < warps; ++i) result = op(result, static_cast<T>(room[i]));
  return result;
}
template <typename T>
__device__ T BlockSum(T value, SharedArray<T> room) {
  return BlockReduce(value, AddOp(), room);
}
template <typename T>
__device__ T BlockMax(T value, SharedArray<T> room) {
  return BlockReduce(value, MaxOp(), room);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_WARP_H_
