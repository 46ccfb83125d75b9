// Some of a matrix's groups of 32 columns. For host code too.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_GROUP_RANGE_H_
#define TANDEM_KERNELS_CUDA_DEVICE_GROUP_RANGE_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::kernels::cuda {

// Groups [begin, begin + count), counted from the matrix's first column.
struct GroupRange {
  uint32_t begin = 0;
  uint32_t count = 0;

  __device__ __forceinline__ bool Has(uint32_t group) const { return group - begin < count; }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_GROUP_RANGE_H_
