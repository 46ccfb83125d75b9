// Cuts a HeadMatMul into tasks.
#ifndef TANDEM_KERNELS_CPU_MATMUL_ENCODE_HEADS_H_
#define TANDEM_KERNELS_CPU_MATMUL_ENCODE_HEADS_H_

#include "kernels/cpu/matmul/product.h"
#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// EncodeHeadMatMul of kernels/cpu/matmul.h with the kernels given. Plain: a MatMul per head, the
// activations quantised once. Transposed: each task takes some columns of a head as floats,
// transposed, and multiplies all tokens' activations, which stay floats.
void EncodeHeadMatMulWith(host::OpList& list, const HeadMatMulParams& params,
                          const MatMulKernels& kernels);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_ENCODE_HEADS_H_
