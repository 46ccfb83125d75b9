// Gate and up of a feed-forward block with the activation in one launch: rows of the product that
// follows, as the int8 groups that it reads.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/matmul/gemm.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Whether EncodeGateUp takes them: gate and up in one quantised type, of as many rows as make a
// block per multiprocessor, where a block has 32 of each.
bool TakesGateUp(const Stream& stream, const MatMulParams& up, const ActivateParams& activate);

// Rows `to` of activate.out, whose first value begins a group, with the bits of the parts; the
// arrays between them are not written. x: groups of the product's rows, as EncodeBlockMatVec and
// EncodeBlockGemm want them. Requires TakesGateUp.
void EncodeGateUp(Stream& stream, const MatMulParams& up, const ActivateParams& activate,
                  const Int8Group* x, const Int8Rows& to);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_H_
