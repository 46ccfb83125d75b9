// Grouped GEMV: rows of an expert times the inputs of up to kFewTokens choices of it, in floats or,
// where weights are blocks, in bytes. Which choices those are is found in a few tokens' ids, or is
// what a list of pieces says.
#ifndef TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMV_H_
#define TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMV_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/column_window.h"
#include "kernels/cuda/moe/expert_matmul.h"
#include "kernels/cuda/moe/row_pieces.h"

namespace tandem::kernels::cuda {

// Choices of an expert that are left to it where there is another kernel for more.
inline constexpr uint32_t kMostGemvChoices = 4;

struct GroupedGemvArgs {
  ExpertMatMulParams p;
  ColumnWindow window;
  const Int8Group* groups;  // of inputs as bytes: (rows of x, groups of the window)
  RowPieces pieces;         // no list: up to kFewTokens tokens
  bool fours = false;       // of inputs as floats; found when the call is encoded
};

// A product per choice, to y of the projections.
void EncodeGroupedGemvUp(Stream& stream, GroupedGemvArgs args);
// And their sums; no list.
void EncodeGroupedGemvDown(Stream& stream, GroupedGemvArgs args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMV_H_
