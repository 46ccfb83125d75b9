// Weights that are indices into a codebook.
#include "kernels/cpu/matmul/kernel_of.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_codebook.h"
#include "kernels/cpu/matmul/unpack_nvfp4.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const CodebookKernels kCodebook = {
    .iq4_nl = KernelOf<QuantisedChunk<Simd, UnpackIQ4_NL<Simd>>>(),
    .iq4_xs = KernelOf<QuantisedChunk<Simd, UnpackIQ4_XS<Simd>>>(),
    .mxfp4 = KernelOf<QuantisedChunk<Simd, UnpackMXFP4<Simd>>>(),
    .nvfp4 = KernelOf<QuantisedChunk<Simd, UnpackNVFP4<Simd>>>(),
};

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
