// Rows of x as a product with block-quantised weights reads them.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_BF16_INPUTS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_BF16_INPUTS_H_

#include <cstdint>

#include "kernels/cuda/device/group_range.h"

namespace tandem::kernels::cuda {

// In BF16, 16-byte aligned and `stride` values apart, from the first column of the first group on:
// zeros where a group has columns that are not multiplied. Offsets in it are 32 bits: it has at
// most kMaxBlockProductTokens rows, and a model at most 2^24 columns (common/model/spec.cc).
struct Bf16Inputs {
  const uint16_t* x = nullptr;
  uint32_t stride = 0;
  uint32_t tokens = 0;
  GroupRange groups = {};
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_BF16_INPUTS_H_
