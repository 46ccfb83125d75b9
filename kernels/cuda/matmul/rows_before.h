// The op before a product, which writes the product's rows in the forms that it reads.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROWS_BEFORE_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROWS_BEFORE_H_

#include <variant>

#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/rows/bf16_rows.h"
#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// The activated rows of a feed-forward block, and all that is before them; `gemm` for its products.
struct HiddenRows {
  DenseGemm& gemm;
  const FeedForwardParams& block;
};

// What writes a product's rows and is encoded with it, if anything.
using RowsBefore = std::variant<std::monostate, RmsNormParams, LayerNormParams, ActivateParams,
                                AttentionParams, HiddenRows>;
RowsBefore RowsOfNorm(const NormParams& norm);

struct RowsToWrite {
  const RowsOfX& x;
  bool floats;   // whether x is read as it is
  bool bytes;    // whether x as int8 groups is: a single row
  bool rounded;  // whether x in BF16 is, in whole groups of 32 columns of the weight
  Int8Group* groups;
  Bf16Rows bf16;
};

// Encodes `before` and, where it does not round its rows, what does. Floats are not written if they
// are not wanted and one kernel gives all that is.
void EncodeBefore(Stream& stream, const RowsBefore& before, const RowsToWrite& to);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROWS_BEFORE_H_
