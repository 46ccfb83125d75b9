// Gate and up of a feed-forward block with the activation in one launch: rows of the product that
// follows, as it reads them.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_H_

#include "common/tensor/type.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/bf16_inputs.h"
#include "kernels/cuda/rows/bf16_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Whether these take them: gate and up in one quantised type, of few enough tokens for
// EncodeBlockProduct.
bool TakesGateUp(const MatMulParams& up, const ActivateParams& activate);

// Rows of activate.out, with the bits of the parts; the arrays between them are not written.
// Require TakesGateUp.
//
// Of one token: x as EncodeBlockMatVec wants it, `to` in groups, of which the first begins with the
// row's first value.
void EncodeGateUpMatVec(Stream& stream, const MatMulParams& up, const ActivateParams& activate,
                        const Int8Group* x, Int8Group* to);
// Of several: x as EncodeBlockProduct wants it.
void EncodeGateUp(Stream& stream, const MatMulParams& up, const ActivateParams& activate,
                  const Bf16Inputs& x, const Bf16Rows& to);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_H_
