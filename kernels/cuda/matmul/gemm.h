// Products of block-quantised weights with any number of rows of x, on tensor cores in bytes: for
// more rows than a GEMV takes and fewer than make it worth while to dequantise the weight first.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMM_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMM_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/quantize_rows.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Tokens of the widest tile.
inline constexpr uint32_t kGemmTileTokens = 32;
// What EncodeBlockGemm wants the activations' groups apart.
constexpr uint32_t GemmGroupStride(uint32_t tokens) {
  return Blocks(tokens, kGemmTileTokens) * kGemmTileTokens;
}

// As EncodeBlockMatVec, and with its bits; but x is (columns.Units(32), GemmGroupStride(tokens)),
// of which the tokens come first.
void EncodeBlockGemm(Stream& stream, tensor::Type type, const MatVecParts& parts,
                     const Int8Group* x, uint32_t tokens, ColumnRange columns);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMM_H_
