// Activations as int8, in groups of 32 with one scale each, for products with block-quantised
// weights; quantised once per call and shared by its projections.
//
// Groups are those of the weight's columns: group g covers columns [32 g, 32 g + 32), and columns
// outside [col_begin, col_begin + col_count) count as zero. Groups outside that range are omitted.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_QUANTIZE_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_QUANTIZE_ROWS_H_

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

// Where a group lies: at out[row * of_row + group * of_group].
struct GroupStrides {
  uint32_t of_row;
  uint32_t of_group;
};

// out is 16-byte aligned. Scale = largest magnitude / 127, bytes rounded to nearest, ties to even;
// a group below 2^-100 is all zeros; one with a NaN or an infinity has the scale NaN.
void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, GroupStrides strides, Int8Group* out);
// out: (rows, columns.Units(32)).
inline void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, Int8Group* out) {
  EncodeQuantizeRows(stream, rows, {rows.columns.Units(32), 1}, out);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_QUANTIZE_ROWS_H_
