// The products of the cpu backend: y = x W^T (+ bias) with W quantised or plain, on SIMD; of one
// weight (MatMul), of the experts that tokens chose, and of each head.
//
// The bits of a row of y depend only on its own x (and on its token's choices), not on other rows,
// on threads, or on how many projections share x.
#ifndef TANDEM_KERNELS_CPU_MATMUL_H_
#define TANDEM_KERNELS_CPU_MATMUL_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cpu/isa.h"
#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// Whether weights of `type` can be multiplied with.
bool CanMatMul(tensor::Type type);

// Rows of the panels (kernels/host/panels.h) that the products read on this machine.
uint32_t PanelRows(Isa isa);

// Appends the entries of one MatMul: reserves its scratch (in a plan pass only that) and adds its
// tasks. REQUIRES: CanMatMul of every weight; this machine has `isa`.
void EncodeMatMul(host::OpList& list, const MatMulParams& params, Isa isa);

// A product of normed rows, and a feed-forward block, whose `down` is that product. Norms have been
// encoded unless they are RMSNorms.
void EncodeNormMatMul(host::OpList& list, const NormParams& norm, const MatMulParams& params,
                      Isa isa);
void EncodeFeedForward(host::OpList& list, const FeedForwardParams& params,
                       const MatMulParams& down, Isa isa);

// The same for the other products.
void EncodeExpertMatMul(host::OpList& list, const ExpertMatMulParams& params, Isa isa);
void EncodeHeadMatMul(host::OpList& list, const HeadMatMulParams& params, Isa isa);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_H_
