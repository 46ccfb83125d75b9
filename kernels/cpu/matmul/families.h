// The families' kernels: one source file per family of weight types, compiled once per instruction
// set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_FAMILIES_H_
#define TANDEM_KERNELS_CPU_MATMUL_FAMILIES_H_

#include "kernels/cpu/matmul/product.h"

#define TANDEM_DECLARE_FAMILIES(isa)        \
  namespace tandem::kernels::cpu::isa {     \
  extern const FloatKernels kFloat;         \
  extern const Blocks32Kernels kBlocks32;   \
  extern const Blocks256Kernels kBlocks256; \
  extern const CodebookKernels kCodebook;   \
  extern const GridKernels kGrid;           \
  extern const FewBitKernels kFewBits;      \
  }

TANDEM_DECLARE_FAMILIES(avx2)
TANDEM_DECLARE_FAMILIES(avx2_vnni)
TANDEM_DECLARE_FAMILIES(avx512)
TANDEM_DECLARE_FAMILIES(avx512_vnni)

#undef TANDEM_DECLARE_FAMILIES

namespace tandem::kernels::cpu::avx512_bf16 {
extern const Kernel kBf16;
}

#endif  // TANDEM_KERNELS_CPU_MATMUL_FAMILIES_H_
