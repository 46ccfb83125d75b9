// The sums of "down" over products per choice in device memory.
#ifndef TANDEM_KERNELS_CUDA_MOE_SUM_CHOICES_H_
#define TANDEM_KERNELS_CUDA_MOE_SUM_CHOICES_H_

#include <cstdint>

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Rows [row, row + rows) of every choice's product.
struct SliceOfProducts {
  uint32_t row;
  uint32_t rows;
  float* products;  // (choices, rows)
};

// Writes these rows of y.
void EncodeSumChoices(Stream& stream, const ExpertMatMulParams& params,
                      const SliceOfProducts& slice);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_SUM_CHOICES_H_
