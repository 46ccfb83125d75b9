// Weights of one or two bits.
#include "kernels/cpu/matmul/kernel_of.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_few_bits.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const FewBitKernels kFewBits = {
    .q1_0 = KernelOf<QuantisedChunk<Simd, UnpackQ1_0<Simd>>>(),
    .q2_0 = KernelOf<QuantisedChunk<Simd, UnpackQ2_0<Simd>>>(),
    .tq1_0 = KernelOf<QuantisedChunk<Simd, UnpackTQ1_0<Simd>>>(),
    .tq2_0 = KernelOf<QuantisedChunk<Simd, UnpackTQ2_0<Simd>>>(),
};

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
