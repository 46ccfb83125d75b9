// The activations that BF16 weights are multiplied with where the machine multiplies BF16: pairs of
// columns rounded to nearest, ties to even. The unit of Activations::kBf16Pairs.
#ifndef TANDEM_KERNELS_CPU_MATMUL_BF16_PAIRS_H_
#define TANDEM_KERNELS_CPU_MATMUL_BF16_PAIRS_H_

#include <cstdint>

namespace tandem::kernels::cpu {

inline uint32_t Bf16Pairs(uint32_t count) { return (count + 1) / 2; }

// out[i] = x[2i] in the lower half, x[2i + 1], or zero past the end, in the upper. Values beyond
// BF16's largest become infinite; NaN stays NaN. Needs AVX2.
void RoundToBf16Pairs(const float* x, uint32_t count, uint32_t* out);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_BF16_PAIRS_H_
