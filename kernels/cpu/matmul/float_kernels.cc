// Plain weights.
#include "kernels/cpu/matmul/float_chunk.h"
#include "kernels/cpu/matmul/kernel_of.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const FloatKernels kFloat = {
    .f32 = KernelOf<FloatChunk<Simd, UnpackF32<Simd>>>(),
    .f16 = KernelOf<FloatChunk<Simd, UnpackF16<Simd>>>(),
    .bf16 = KernelOf<FloatChunk<Simd, UnpackBF16<Simd>>>(),
};

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
