// y[t, i] += bias[i]: the epilogue of a dense product.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ADD_BIAS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ADD_BIAS_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// y: (rows, cols), rows y_stride apart; bias: (cols).
void EncodeAddBias(Stream& stream, const float* bias, float* y, uint32_t rows, uint32_t cols,
                   uint32_t y_stride);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ADD_BIAS_H_
