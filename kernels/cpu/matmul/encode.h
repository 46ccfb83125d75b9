// Cuts the products of kernels/cpu/matmul.h into tasks, with the kernels given.
#ifndef TANDEM_KERNELS_CPU_MATMUL_ENCODE_H_
#define TANDEM_KERNELS_CPU_MATMUL_ENCODE_H_

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/conversion.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/window.h"
#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// First an entry that converts the activations once for all projections that need them converted,
// then one entry for all products. A norm, if any, is in the first.
void EncodeMatMulWith(host::OpList& list, const MatMulParams& params, const MatMulKernels& kernels,
                      const NormBefore& norm = {});

// The second entry alone. `all`: QuantisedWindow(params).
void EncodeProducts(host::OpList& list, const MatMulParams& params, const MatMulKernels& kernels,
                    const Conversion& conversion, const Window& all);

// As EncodeMatMulWith for the products of gate and up, whose tasks also activate what they
// computed, with `run_activate`, and convert it for `down`; then one entry for that product.
void EncodeFeedForwardWith(host::OpList& list, const NormBefore& norm, const MatMulParams& up,
                           const ActivateParams& activate, ActivateFn run_activate,
                           const MatMulParams& down, const MatMulKernels& kernels);

// Three entries: the choices are sorted by expert, the activations are gathered in that order
// (quantised once per token), and then each expert's rows are read once for all tokens that chose
// it.
void EncodeExpertMatMulWith(host::OpList& list, const ExpertMatMulParams& params,
                            const MatMulKernels& kernels);

// Plain: a MatMul per head, the activations quantised once. Transposed: each task takes some
// columns of a head as floats, transposed, and multiplies all tokens' activations, which stay
// floats.
void EncodeHeadMatMulWith(host::OpList& list, const HeadMatMulParams& params,
                          const MatMulKernels& kernels);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_ENCODE_H_
