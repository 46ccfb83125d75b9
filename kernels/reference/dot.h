// Shared by the scalar products: a row of a weight as floats, and a dot product in double.
#ifndef TANDEM_KERNELS_REFERENCE_DOT_H_
#define TANDEM_KERNELS_REFERENCE_DOT_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/dequantize.h"
#include "kernels/ops.h"

namespace tandem::kernels::reference {

// Row `n` of the matrix of `weight`'s shape that begins at `data`, all its cols.
inline void LoadRow(const Weight& weight, const std::byte* data, size_t n, float* row) {
  tensor::Dequantize(weight.type, data + n * weight.row_stride_bytes, row, weight.cols);
}

// Eight accumulators, added up at the end: a fixed order that is still fast.
inline double Dot(const float* a, const float* b, size_t n) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += double{a[i + j]} * b[i + j];
  }
  for (; i < n; ++i) sums[0] += double{a[i]} * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace tandem::kernels::reference

#endif  // TANDEM_KERNELS_REFERENCE_DOT_H_
