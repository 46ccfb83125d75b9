// What the kernels of a product read besides weights: the rows of x in the forms that its
// projections need, and room for a dequantised tile of a weight, all in the op's scratch.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ACTIVATIONS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ACTIVATIONS_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/rows_before.h"
#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Whether cuBLASLt multiplies such weights.
bool IsDense(tensor::Type type, uint32_t tokens);

// The rows of x that the projections read, and their columns.
RowsOfX RowsOf(const MatMulParams& params);

// Null in a plan pass, and where no projection needs it.
struct Activations {
  Int8Group* groups = nullptr;   // for products in bytes, as gemv.h and gemm.h want them
  uint32_t cols = 0;             // of all rows of 16-bit values here
  uint32_t tile_rows = 0;        // 0: no weight is dequantised
  uint16_t* bf16 = nullptr;      // (tokens, cols), for dense BF16 and quantised weights
  uint16_t* f16 = nullptr;       // (tokens, cols), for dense F16 weights
  int32_t* exponents = nullptr;  // (tokens), of f16
  uint16_t* tile = nullptr;      // (tile_rows, cols)
};

// Encodes `before` and what converts its rows. Where no projection reads floats, x need not be
// written.
Activations EncodeActivations(Stream& stream, const RowsBefore& before, const MatMulParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ACTIVATIONS_H_
