// Weights in blocks of 32 values with their own scale and, in some formats, an offset.
#include "kernels/cpu/matmul/kernel_of.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_blocks_of_32.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const Blocks32Kernels kBlocks32 = {
    .q8_0 = KernelOf<QuantisedChunk<Simd, UnpackQ8_0<Simd>>>(),
    .q4_0 = KernelOf<QuantisedChunk<Simd, UnpackQ4_0<Simd>>>(),
    .q4_1 = KernelOf<QuantisedChunk<Simd, UnpackQ4_1<Simd>>>(),
    .q5_0 = KernelOf<QuantisedChunk<Simd, UnpackQ5_0<Simd>>>(),
    .q5_1 = KernelOf<QuantisedChunk<Simd, UnpackQ5_1<Simd>>>(),
};

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
