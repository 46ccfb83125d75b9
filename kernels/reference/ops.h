// The scalar reference of every op with arithmetic: plain loops that read like the formulas,
// activations always F32, weights dequantised row by row, sums in double. The SIMD and CUDA kernels
// are compared with it.
//
// Each function appends the entries of one op call. One op, one file. All other ops are in
// kernels/host/ops.h.
#ifndef TANDEM_KERNELS_REFERENCE_OPS_H_
#define TANDEM_KERNELS_REFERENCE_OPS_H_

#include <variant>

#include "kernels/host/op_list.h"
#include "kernels/host/ops.h"
#include "kernels/op.h"

namespace tandem::kernels::reference {

using host::EncodeOp;
void EncodeOp(host::OpList& list, const RmsNormParams& params);
void EncodeOp(host::OpList& list, const MatMulParams& params);
void EncodeOp(host::OpList& list, const ExpertMatMulParams& params);
void EncodeOp(host::OpList& list, const HeadMatMulParams& params);
void EncodeOp(host::OpList& list, const RopeWriteKvParams& params);
void EncodeOp(host::OpList& list, const AttentionParams& params);
void EncodeOp(host::OpList& list, const ShortConvParams& params);
void EncodeOp(host::OpList& list, const GatedDeltaRuleParams& params);
void EncodeOp(host::OpList& list, const ActivateParams& params);

template <Composite Params>
void EncodeOp(host::OpList& list, const Params& params) {
  Decompose(params, [&](const auto& part) { EncodeOp(list, part); });
}

inline void Encode(host::OpList& list, const Op& op) {
  std::visit([&](const auto& params) { EncodeOp(list, params); }, op);
}

}  // namespace tandem::kernels::reference

#endif  // TANDEM_KERNELS_REFERENCE_OPS_H_
