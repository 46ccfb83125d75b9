// The order in which a product with a block-quantised weight is added up, the same in every kernel
// that multiplies bytes: eight partial sums, the i-th over the groups of 32 columns whose number is
// i modulo 8, in ascending order and each with one rounding; then the partial sums by a tree.
// Groups are counted from the matrix's first column.
//
// It suits both ways of multiplying: in a GEMV eight lanes share a row, in a tile (int8_tile.h)
// eight warps share the columns.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_PARTIAL_SUMS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_PARTIAL_SUMS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kPartialSums = 8;

// The first group of partial sum `i` that is not below `begin`.
__device__ __forceinline__ uint32_t FirstGroupOf(uint32_t i, uint32_t begin) {
  return begin + (i - begin) % kPartialSums;  // wraps around, by a multiple of kPartialSums
}

// The sum of eight consecutive lanes' partial sums, in each of them.
__device__ __forceinline__ float TotalOfLanes(float partial) {
  return LanesReduce<kPartialSums>(partial, AddOp());
}

// The same of values in one thread: partial(i) is the i-th.
template <typename F>
__device__ __forceinline__ float TotalOf(F partial) {
  const auto pair = [&](uint32_t i) { return partial(i) + partial(i + 4); };
  return (pair(0) + pair(2)) + (pair(1) + pair(3));
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_PARTIAL_SUMS_H_
