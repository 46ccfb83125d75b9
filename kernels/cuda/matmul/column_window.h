// ColumnWindow: the columns of a weight that inputs cover (Weight::col_begin, col_count), widened
// to multiples of 32: blocks of weights stay whole, and inputs outside the window count as zeros.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_COLUMN_WINDOW_H_
#define TANDEM_KERNELS_CUDA_MATMUL_COLUMN_WINDOW_H_

#include <cstdint>

#include "kernels/ops.h"

namespace tandem::kernels::cuda {

struct ColumnWindow {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first = 0;   // begin, rounded down to a multiple of 32
  uint32_t padded = 0;  // columns from `first` on, a multiple of 32

  explicit ColumnWindow(const Weight& weight)
      : begin(weight.col_begin),
        end(weight.col_begin + weight.col_count),
        first(begin / 32 * 32),
        padded((end - first + 31) / 32 * 32) {}
  ColumnWindow() = default;
  bool operator==(const ColumnWindow&) const = default;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_COLUMN_WINDOW_H_
