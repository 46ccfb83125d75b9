// Which columns of a weight an op reads: the rank's part, widened to whole blocks.
#ifndef TANDEM_KERNELS_HOST_WINDOW_H_
#define TANDEM_KERNELS_HOST_WINDOW_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

// Columns [begin, end).
struct Window {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t cols() const { return end - begin; }
};

// The weight's columns in use, widened to whole blocks of `align` columns.
inline Window GrowTo(const Weight& weight, uint32_t align) {
  const uint32_t end = weight.col_begin + weight.col_count;
  return {weight.col_begin / align * align, (end + align - 1) / align * align};
}

inline Window WindowOf(const Weight& weight) {
  return GrowTo(weight, tensor::Traits(weight.type).block_values);
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_WINDOW_H_
