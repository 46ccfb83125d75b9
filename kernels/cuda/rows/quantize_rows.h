// Activations as int8, in groups of 32 with one scale each, for products with block-quantised
// weights; quantised once per call (device/quantize_group.h) and shared by its projections.
//
// Groups are those of the weight's columns: group g covers columns [32 g, 32 g + 32), and columns
// outside [col_begin, col_begin + col_count) count as zero. Groups outside that range are omitted.
#ifndef TANDEM_KERNELS_CUDA_ROWS_QUANTIZE_ROWS_H_
#define TANDEM_KERNELS_CUDA_ROWS_QUANTIZE_ROWS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// A range of columns, widened at both ends to multiples of a unit.
struct ColumnRange {
  uint32_t begin = 0;
  uint32_t count = 0;

  // First unit, and how many.
  constexpr uint32_t First(uint32_t unit) const { return begin / unit; }
  constexpr uint32_t Units(uint32_t unit) const {
    return count == 0 ? 0 : (begin + count + unit - 1) / unit - begin / unit;
  }
};

struct RowsOfX {
  const float* x = nullptr;  // (rows, columns.count), rows x_stride apart
  uint32_t rows = 0;
  uint32_t x_stride = 0;
  ColumnRange columns;
};

// out: (rows, columns.Units(32)), 16-byte aligned.
void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, Int8Group* out);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_QUANTIZE_ROWS_H_
