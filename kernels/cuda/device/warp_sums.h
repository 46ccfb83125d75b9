// Many sums over a warp at once: with kCount values per lane, each lane ends with one of the sums,
// by kCount - 1 + log2(32 / kCount) exchanges rather than 5 kCount. A sum's bits do not depend on
// kCount: each uses the same tree over lanes.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_WARP_SUMS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_WARP_SUMS_H_

#include <cuda_runtime.h>

#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// Which sum a lane gets.
template <int kCount>
__device__ __forceinline__ uint32_t SumOfLane(uint32_t lane) {
  return lane / (kWarp / kCount);
}

// The sum over all lanes of values[SumOfLane<kCount>(lane)]; kCount is a power of two up to 32.
// All lanes call it. `values` is overwritten.
template <int kCount>
__device__ __forceinline__ float WarpSums(float (&values)[kCount]) {
  static_assert(kCount <= 32 && (kCount & (kCount - 1)) == 0);
  const uint32_t lane = threadIdx.x % kWarp;
  int mask = 16;
  // A lane keeps its side's half of the remaining values and sends the other half.
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2, mask /= 2) {
    const bool upper = (lane & static_cast<uint32_t>(mask)) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float given = upper ? values[i] : values[i + half];
      const float kept = upper ? values[i + half] : values[i];
      values[i] = kept + __shfl_xor_sync(kAllLanes, given, mask);
    }
  }
#pragma unroll
  for (; mask > 0; mask /= 2) values[0] += __shfl_xor_sync(kAllLanes, values[0], mask);
  return values[0];
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_WARP_SUMS_H_
