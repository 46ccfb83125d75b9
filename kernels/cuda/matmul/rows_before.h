// The op before a product, which writes the product's rows in the forms that it reads.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROWS_BEFORE_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROWS_BEFORE_H_

#include <variant>

#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// The op that writes a product's rows and is encoded with it, if any.
using RowsBefore =
    std::variant<std::monostate, RmsNormParams, LayerNormParams, ActivateParams, AttentionParams>;

struct RowsToWrite {
  const RowsOfX& x;
  bool floats;  // whether x is read as it is
  bool bytes;   // whether its groups are
  Int8Rows groups;
};

// Encodes `before` and, where it does not round its rows, what does. Floats are not written if only
// bytes are wanted and one kernel gives them.
void EncodeBefore(Stream& stream, const RowsBefore& before, const RowsToWrite& to);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROWS_BEFORE_H_
