// What the kernels of a product read besides weights: the rows of x in the forms that its
// projections need, and room for a dequantised tile of a weight, all in the op's scratch.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ACTIVATIONS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ACTIVATIONS_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/bf16_inputs.h"
#include "kernels/cuda/matmul/rows_before.h"
#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Whether cuBLASLt multiplies such weights.
bool IsDense(tensor::Type type, uint32_t tokens);

// The rows of x that the projections read, and their columns.
RowsOfX RowsOf(const MatMulParams& params);

// Null in a plan pass, and where no projection needs it. Rows of 16-bit values begin with the first
// column of a group of 32 of the weights, and have whole groups; 0 in other columns.
struct Activations {
  Int8Group* groups = nullptr;   // of a single row, for a GEMV of quantised weights
  uint32_t cols = 0;             // of all rows of 16-bit values here
  uint16_t* bf16 = nullptr;      // (tokens, cols), for quantised weights and dense BF16 ones
  uint16_t* f16 = nullptr;       // (tokens, cols), for dense F16 weights
  int32_t* exponents = nullptr;  // (tokens), of f16
  uint32_t tile_rows = 0;        // 0: no weight is dequantised
  uint16_t* tile = nullptr;      // (tile_rows, 8 * columns.Units(8))
};

// Its BF16 rows as EncodeBlockProduct wants them.
Bf16Inputs InputsOf(const Activations& activations, const RowsOfX& x);

// Encodes `before` and what converts its rows. Where no projection reads floats, x need not be
// written.
Activations EncodeActivations(Stream& stream, const RowsBefore& before, const MatMulParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ACTIVATIONS_H_
