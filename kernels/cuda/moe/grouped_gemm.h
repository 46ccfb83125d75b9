// Grouped GEMM on tensor cores: weights and inputs are both rounded to BF16. For F16 and BF16
// weights, and for blocks where there are many tokens; with fewer those are multiplied in bytes
// (block_gemm.h), as F32 weights, which would lose precision, are in floats.
//
// A result's bits depend only on the row of x and the expert.
#ifndef TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_
#define TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_

#include <cstdint>

#include "kernels/cuda/matmul/column_window.h"
#include "kernels/cuda/moe/row_pieces.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Choices of a tile. In a larger one more choices share what it takes to dequantise a weight.
constexpr uint32_t GroupedGemmSize(uint32_t choices_of_expert) {
  return choices_of_expert <= 48 ? 64 : 128;
}

struct GroupedGemmArgs {
  ExpertMatMulParams p;
  ColumnWindow window;
  RowPieces pieces;
  const uint16_t* x;  // rows of inputs as BF16, window.padded apart; pieces.size: a GroupedGemmSize
};

// A product per choice, to y of the projections.
void EncodeGroupedGemm(Stream& stream, const GroupedGemmArgs& args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_
