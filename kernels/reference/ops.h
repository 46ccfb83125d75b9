// The scalar truth of every op with arithmetic: plain loops that read like the formulas,
// activations always F32, weights dequantised row by row, sums in double. What the SIMD and CUDA
// kernels are compared with.
//
// Each function appends the entries of one op call. One op, one file.
#ifndef TANDEM_KERNELS_REFERENCE_OPS_H_
#define TANDEM_KERNELS_REFERENCE_OPS_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::reference {

void EncodeRmsNorm(host::OpList& list, const RmsNormParams& params);
void EncodeMatMul(host::OpList& list, const MatMulParams& params);
void EncodeExpertMatMul(host::OpList& list, const ExpertMatMulParams& params);
void EncodeHeadMatMul(host::OpList& list, const HeadMatMulParams& params);
void EncodeRopeWriteKv(host::OpList& list, const RopeWriteKvParams& params);
void EncodeAttention(host::OpList& list, const AttentionParams& params);
void EncodeActivate(host::OpList& list, const ActivateParams& params);

}  // namespace tandem::kernels::reference

#endif  // TANDEM_KERNELS_REFERENCE_OPS_H_
