// Cuts an ExpertMatMul into tasks.
#ifndef TANDEM_KERNELS_CPU_MATMUL_ENCODE_EXPERTS_H_
#define TANDEM_KERNELS_CPU_MATMUL_ENCODE_EXPERTS_H_

#include "kernels/cpu/matmul/product.h"
#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// EncodeExpertMatMul of kernels/cpu/matmul.h with the kernels given. Three entries: the choices are
// sorted by expert, the activations are gathered in that order (quantised once per token), and then
// each expert's rows are read once for all tokens that chose it.
void EncodeExpertMatMulWith(host::OpList& list, const ExpertMatMulParams& params,
                            const MatMulKernels& kernels);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_ENCODE_EXPERTS_H_
