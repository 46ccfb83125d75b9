#include "kernels/cpu/matmul.h"

#include <variant>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"

namespace tandem::kernels::cpu {

namespace {

NormBefore Before(const NormParams& norm, Isa isa) {
  const auto* const rms_norm = std::get_if<RmsNormParams>(&norm);
  if (rms_norm == nullptr) return {};
  return {MakeRmsNormTask(*rms_norm), KernelsOf(isa).rms_norm};
}

}  // namespace

bool CanMatMul(tensor::Type type) { return FindKernel(kAvx2Kernels, type) != nullptr; }

uint32_t PanelRows(Isa isa) { return BestKernels(isa).lanes; }

void EncodeMatMul(host::OpList& list, const MatMulParams& params, Isa isa) {
  EncodeMatMulWith(list, params, BestKernels(isa));
}

void EncodeNormMatMul(host::OpList& list, const NormParams& norm, const MatMulParams& params,
                      Isa isa) {
  EncodeMatMulWith(list, params, BestKernels(isa), Before(norm, isa));
}

void EncodeFeedForward(host::OpList& list, const FeedForwardParams& params,
                       const MatMulParams& down, Isa isa) {
  EncodeFeedForwardWith(list, Before(params.norm, isa), params.up, params.activate,
                        KernelsOf(isa).activate, down, BestKernels(isa));
}

void EncodeExpertMatMul(host::OpList& list, const ExpertMatMulParams& params, Isa isa) {
  EncodeExpertMatMulWith(list, params, BestKernels(isa));
}

void EncodeHeadMatMul(host::OpList& list, const HeadMatMulParams& params, Isa isa) {
  EncodeHeadMatMulWith(list, params, BestKernels(isa));
}

}  // namespace tandem::kernels::cpu
