#include "kernels/cpu/matmul.h"

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"

namespace tandem::kernels::cpu {

bool CanMatMul(tensor::Type type) { return FindKernel(kAvx2Kernels, type) != nullptr; }

uint32_t PanelRows(Isa isa) { return BestKernels(isa).lanes; }

void EncodeMatMul(host::OpList& list, const MatMulParams& params, Isa isa) {
  EncodeMatMulWith(list, params, BestKernels(isa));
}

void EncodeExpertMatMul(host::OpList& list, const ExpertMatMulParams& params, Isa isa) {
  EncodeExpertMatMulWith(list, params, BestKernels(isa));
}

void EncodeHeadMatMul(host::OpList& list, const HeadMatMulParams& params, Isa isa) {
  EncodeHeadMatMulWith(list, params, BestKernels(isa));
}

}  // namespace tandem::kernels::cpu
