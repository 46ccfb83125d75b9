// The order in which tiles in BF16 (bf16_tile.h) add up a product, the same for all their shapes:
// the columns are cut into eight ranges, of each the tensor cores add the products in order, and
// then the ranges' sums are added in order.
//
// Ranges are octets of 256 columns, as equally many as possible. Half an octet is four groups of
// 32, of which the lanes of a quad have one each: a step multiplies eight columns of every group,
// so four steps make a half. Groups and octets are counted from the matrix's first column.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_COLUMN_RANGES_H_
#define TANDEM_KERNELS_CUDA_MATMUL_COLUMN_RANGES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/group_range.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kColumnRanges = 8;
inline constexpr uint32_t kHalfGroups = 4;
inline constexpr uint32_t kOctetGroups = 2 * kHalfGroups;

// The first octet of a range of the columns that are multiplied; of range kColumnRanges the end of
// the last.
__device__ __forceinline__ uint32_t FirstOctet(const GroupRange& groups, uint32_t range) {
  const uint32_t first = groups.begin / kOctetGroups;
  const uint32_t end = (groups.begin + groups.count + kOctetGroups - 1) / kOctetGroups;
  return first + (end - first) * range / kColumnRanges;
}
// Whether there are all groups of the octets [first, end).
__device__ __forceinline__ bool HasOctets(const GroupRange& groups, uint32_t first, uint32_t end) {
  return first * kOctetGroups >= groups.begin && end * kOctetGroups <= groups.begin + groups.count;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_COLUMN_RANGES_H_
