// How products of up to 256 tokens end: a sum is stored, or added to a row.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_STORE_SUM_H_
#define TANDEM_KERNELS_CUDA_MATMUL_STORE_SUM_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/gate.h"
#include "kernels/cuda/matmul/gemv.h"

namespace tandem::kernels::cuda {

__device__ __forceinline__ float WithBias(const MatVecPart& part, uint32_t row, float sum) {
  return part.bias != nullptr ? sum + part.bias[row] : sum;
}

__device__ __forceinline__ void StoreSum(const MatVecPart& part, uint32_t row, uint32_t token,
                                         float sum) {
  sum = WithBias(part, row, sum);
  float& y = part.y[static_cast<size_t>(token) * part.y_stride + row];
  if (part.adds) {
    y = fmaf(GateFactor(part.gate, token), sum, y);  // as AddRows
  } else {
    y = sum;
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_STORE_SUM_H_
