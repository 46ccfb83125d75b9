// The instruction sets that the cpu backend is compiled for, and whether this machine has them.
#ifndef TANDEM_KERNELS_CPU_ISA_H_
#define TANDEM_KERNELS_CPU_ISA_H_

#include <string>

namespace tandem::kernels::cpu {

enum class Isa {
  kAvx2,      // with FMA and F16C
  kAvx2Vnni,  // AVX-VNNI besides all of kAvx2: processors without AVX-512 that multiply bytes
  kAvx512,    // F, BW, VL, DQ; besides all of kAvx2
};

// "avx2", "avx2-vnni", "avx512".
const char* Name(Isa isa);

// The instructions of `isa` that this machine lacks, as "fma, f16c"; empty when it can run.
std::string MissingInstructions(Isa isa);

// Whether AVX-512 also multiplies bytes.
bool HasVnni();

// Whether it multiplies BF16, too: every processor that does has VNNI.
bool HasBf16();

// Whether those BF16 products are faster than those of floats. vdpbf16ps does twice
// the products of FMA on Zen 4, and half as many on Intel's family 6, model 207. No bit tells: the
// maker has to.
bool HasFastBf16();

// Whether AVX-512 also multiplies and looks up bytes: VNNI and VBMI.
bool HasByteProducts();

// Whether prefetches straight to the L1 cache keep memory busy: on AMD's Zen 5 they read up to a
// third more than those to L2 and then to L1, which other processors have been measured with
// (docs/performance.md). The family tells; later ones are taken to be alike.
bool FetchesFarToL1();

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_ISA_H_
