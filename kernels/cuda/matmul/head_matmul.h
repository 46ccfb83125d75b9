// The two ways to multiply by heads: row by row in floats for few tokens and for F32 weights, and
// with tensor cores on BF16 for many.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_HEAD_MATMUL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_HEAD_MATMUL_H_

#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {

// Tokens whose products are summed side by side, so that weights are read once for all of them.
inline constexpr uint32_t kHeadTokens = 8;

void EncodeHeadRows(Stream& stream, const HeadMatMulParams& params);
void EncodeHeadColumns(Stream& stream, const HeadMatMulParams& params);  // transposed
void EncodeHeadTiles(Stream& stream, const HeadMatMulParams& params);    // both; not F32

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_HEAD_MATMUL_H_
