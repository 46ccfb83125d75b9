#include "kernels/cpu/matmul/make_kernels.h"
#include "kernels/cpu/matmul/simd_avx2.h"

namespace tandem::kernels::cpu {

constinit const MatMulKernels kAvx2Kernels = MakeKernels<Avx2>("avx2");

}  // namespace tandem::kernels::cpu
