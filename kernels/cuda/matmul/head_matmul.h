// The two per-head products: row by row in float for few tokens and for F32 weights, and on tensor
// cores in BF16 for many tokens.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_HEAD_MATMUL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_HEAD_MATMUL_H_

#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {

// Tokens accumulated together, so that weights are read once for all of them.
inline constexpr uint32_t kHeadTokens = 8;

void EncodeHeadRows(Stream& stream, const HeadMatMulParams& params);
void EncodeHeadColumns(Stream& stream, const HeadMatMulParams& params);  // transposed
void EncodeHeadTiles(Stream& stream, const HeadMatMulParams& params);    // both; not F32

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_HEAD_MATMUL_H_
