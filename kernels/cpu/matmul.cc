#include "kernels/cpu/matmul.h"

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"

namespace tandem::kernels::cpu {

bool CanMatMul(tensor::Type type) { return FindKernel(kAvx2Kernels, type) != nullptr; }

void EncodeMatMul(host::OpList& list, const MatMulParams& params, Isa isa) {
  EncodeMatMulWith(list, params, BestKernels(isa));
}

}  // namespace tandem::kernels::cpu
