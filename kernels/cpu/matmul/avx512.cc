#include "kernels/cpu/matmul/make_kernels.h"
#include "kernels/cpu/matmul/simd_avx512.h"

namespace tandem::kernels::cpu {

constinit const MatMulKernels kAvx512Kernels = MakeKernels<Avx512<false>>("avx512");

}  // namespace tandem::kernels::cpu
