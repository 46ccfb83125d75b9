#include "kernels/cpu/matmul/make_kernels.h"
#include "kernels/cpu/matmul/simd_avx512.h"

namespace tandem::kernels::cpu {

constinit const MatMulKernels kAvx512VnniKernels = MakeKernels<Avx512<true>>("avx512-vnni");

}  // namespace tandem::kernels::cpu
