// Activate whose rows a product reads rounded to BF16: they are rounded as they are computed.
#ifndef TANDEM_KERNELS_CUDA_ROWS_ACTIVATE_H_
#define TANDEM_KERNELS_CUDA_ROWS_ACTIVATE_H_

#include "kernels/cuda/rows/bf16_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// params.out may be null: it is not written then.
void EncodeActivate(Stream& stream, const ActivateParams& params, const Bf16Rows& bf16);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_ACTIVATE_H_
