// Rows of floats rounded to BF16 for the tensor cores, once per op, so that tiles sharing a row
// don't round it again.
//
// Row r = outer * inner_rows + inner begins at x + outer * outer_stride + inner * inner_stride. In
// `out` rows are `padded` apart; value i of a row is at `shift` + i, everything else is zero.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROUND_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROUND_ROWS_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

struct RoundRowsParams {
  const float* x = nullptr;
  uint32_t rows = 0;
  uint32_t inner_rows = 1;
  uint32_t outer_stride = 0;
  uint32_t inner_stride = 0;
  uint32_t count = 0;  // values of a row
  uint32_t shift = 0;
  uint32_t padded = 0;  // a multiple of 8, at least shift + count
  uint16_t* out = nullptr;
};

void EncodeRoundRows(Stream& stream, const RoundRowsParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROUND_ROWS_H_
