// Weights that are entries of grids.
#include "kernels/cpu/matmul/kernel_of.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_eighths.h"
#include "kernels/cpu/matmul/unpack_signed_grids.h"

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

constinit const GridKernels kGrid = {
    .iq1_s = KernelOf<QuantisedChunk<Simd, UnpackIQ1_S<Simd>>>(),
    .iq1_m = KernelOf<QuantisedChunk<Simd, UnpackIQ1_M<Simd>>>(),
    .iq2_xxs = KernelOf<QuantisedChunk<Simd, UnpackIQ2_XXS<Simd>>>(),
    .iq2_xs = KernelOf<QuantisedChunk<Simd, UnpackIQ2_XS<Simd>>>(),
    .iq2_s = KernelOf<QuantisedChunk<Simd, UnpackIQ2_S<Simd>>>(),
    .iq3_xxs = KernelOf<QuantisedChunk<Simd, UnpackIQ3_XXS<Simd>>>(),
    .iq3_s = KernelOf<QuantisedChunk<Simd, UnpackIQ3_S<Simd>>>(),
};

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA
