// Cuts a MatMul into tasks.
#ifndef TANDEM_KERNELS_CPU_MATMUL_ENCODE_H_
#define TANDEM_KERNELS_CPU_MATMUL_ENCODE_H_

#include "kernels/cpu/matmul/product.h"
#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// EncodeMatMul of kernels/cpu/matmul.h with the kernels given. First an entry that quantises the
// activations once for all projections that need them quantised, then one entry for all products.
void EncodeMatMulWith(host::OpList& list, const MatMulParams& params, const MatMulKernels& kernels);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_ENCODE_H_
