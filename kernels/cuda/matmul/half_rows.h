// Rows of floats as F16 for products with F16 weights. F16 ends at 65504, which activations exceed
// in some models, so a row with larger values is divided by a power of two, and its product
// multiplied by it; both are exact. See docs/decisions/0015-f16-weights.md.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_HALF_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_HALF_ROWS_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

struct HalfRowsParams {
  const float* x = nullptr;
  uint32_t rows = 0;
  uint32_t x_stride = 0;
  uint32_t count = 0;   // values of a row
  uint32_t shift = 0;   // zeros before the first
  uint32_t padded = 0;  // a multiple of 8, at least shift + count: rows of `out`
  uint16_t* out = nullptr;
  int32_t* exponents = nullptr;  // (rows): x = out * 2^exponent, 0 where no value is too large
};

// Values that are not finite stay what they are and do not count.
void EncodeHalfRows(Stream& stream, const HalfRowsParams& params);

// y[t, i] *= 2^exponents[t]. y: (rows, cols), rows y_stride apart.
void EncodeScaleRows(Stream& stream, const int32_t* exponents, float* y, uint32_t rows,
                     uint32_t cols, uint32_t y_stride);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_HALF_ROWS_H_
