// BF16 weights with activations rounded to BF16.
#include "kernels/cpu/matmul/float_chunk.h"
#include "kernels/cpu/matmul/kernel_of.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const Kernel kBf16 = KernelOf<FloatChunk<Simd, BF16Pairs<Simd>>>();

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
