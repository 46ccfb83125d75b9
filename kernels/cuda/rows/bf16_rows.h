// Where a kernel leaves rows rounded to BF16, for products on tensor cores.
#ifndef TANDEM_KERNELS_CUDA_ROWS_BF16_ROWS_H_
#define TANDEM_KERNELS_CUDA_ROWS_BF16_ROWS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cuda {

// 16-byte aligned, rows `stride` values apart, a multiple of 8.
struct Bf16Rows {
  uint16_t* out = nullptr;
  uint32_t stride = 0;

  __device__ __forceinline__ uint16_t* At(uint32_t row, uint32_t column) const {
    return out + static_cast<size_t>(row) * stride + column;
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_BF16_ROWS_H_
