// Products of block-quantised weights with up to kMaxBlockProductTokens rows of x, on tensor cores
// in BF16: y = x W^T (+ bias) for up to three weights in one launch. Weights are read as they are.
//
// A row's bits depend only on the row, not on the number of tokens.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_H_
#define TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/matmul/bf16_inputs.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/rope_end.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// With more it is faster to dequantise a weight first: that does not grow with the tokens.
inline constexpr uint32_t kMaxBlockProductTokens = 128;

// Parts have one type, or types that MixTypes allows in one launch.
void EncodeBlockProduct(Stream& stream, const MatVecParts& parts, const Bf16Inputs& x,
                        const RopeEnd& end = {});

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_H_
