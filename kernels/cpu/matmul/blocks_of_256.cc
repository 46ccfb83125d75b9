// K-quants: weights in blocks of 256 values.
#include "kernels/cpu/matmul/kernel_of.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_blocks_of_256.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const Blocks256Kernels kBlocks256 = {
    .q2_k = KernelOf<QuantisedChunk<Simd, UnpackQ2_K<Simd>>>(),
    .q3_k = KernelOf<QuantisedChunk<Simd, UnpackQ3_K<Simd>>>(),
    .q4_k = KernelOf<QuantisedChunk<Simd, UnpackQ4_K<Simd>>>(),
    .q5_k = KernelOf<QuantisedChunk<Simd, UnpackQ5_K<Simd>>>(),
    .q6_k = KernelOf<QuantisedChunk<Simd, UnpackQ6_K<Simd>>>(),
};

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
