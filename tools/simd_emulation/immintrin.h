// AVX-512 and AVX-VNNI for machines without them: stands before the compiler's header of the same
// name in files that are compiled for such a set (kernels/cpu/isa.bzl), when they are built to be
// emulated. Those files then contain AVX2 alone, and their code runs wherever AVX2 does.
//
// Functions have the names of the intrinsics, and are found before the compiler's because they
// stand in the namespace of all our code. There are only those that our code uses. What they
// compute is Intel's Intrinsics Guide; types are the compiler's.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_IMMINTRIN_H_
#define TANDEM_TOOLS_SIMD_EMULATION_IMMINTRIN_H_

#include "tools/simd_emulation/bytes_and_pairs.h"
#include "tools/simd_emulation/floats.h"
#include "tools/simd_emulation/integers.h"
#include "tools/simd_emulation/lanes.h"
#include "tools/simd_emulation/moves.h"

#endif  // TANDEM_TOOLS_SIMD_EMULATION_IMMINTRIN_H_
