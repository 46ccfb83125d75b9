// Dequantises rows of a weight to BF16, for dense products with many tokens.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_DEQUANTIZE_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_DEQUANTIZE_ROWS_H_

#include <cstdint>

#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// out: (row_count, 8 * columns.Units(8)), 16-byte aligned: rows [row_begin, + row_count) of the
// weight, the columns from 8 * columns.First(8), rounded to nearest, ties to even. Columns outside
// `columns` have the weight's values too, or the zeros of row padding.
void EncodeDequantizeRows(Stream& stream, const Weight& weight, uint32_t row_begin,
                          uint32_t row_count, ColumnRange columns, uint16_t* out);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_DEQUANTIZE_ROWS_H_
