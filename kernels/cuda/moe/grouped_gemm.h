// Grouped GEMM on tensor cores for F16 and BF16 weights: both are rounded to BF16. F32 weights
// would lose precision; blocks are multiplied in bytes (matmul/gemm.h).
#ifndef TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_
#define TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_

#include <cstdint>

#include "kernels/cuda/matmul/column_window.h"
#include "kernels/cuda/matmul/row_pieces.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Choices of a tile.
inline constexpr uint32_t kGroupedGemmSize = 64;

struct GroupedGemmArgs {
  ExpertMatMulParams p;
  ColumnWindow window;
  RowPieces pieces;
  const uint16_t* x;  // rows of inputs as BF16, window.padded apart
};

// A product per choice, to y of the projections.
void EncodeGroupedGemm(Stream& stream, const GroupedGemmArgs& args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_
