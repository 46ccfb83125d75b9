// Shared by the kernels of ExpertMatMul. A choice is (token, slot): its index is token * top_k +
// slot, as in ExpertMatMulParams::ids.
//
// Few tokens: a grouped GEMV finds the choices of an expert in the ids, and "down" adds up in the
// same kernel. More (sorted_choices.h): choices are sorted by expert, and each piece of an expert's
// choices goes to the kernel of its size, the dense ones where weights are blocks.
//
// "Down" always adds a token's contributions in ascending order of experts: products are kept apart
// until all are there, in shared memory or in slices of rows in device memory, and then one thread
// sums each output. So nothing depends on the order in which warps or blocks run.
#ifndef TANDEM_KERNELS_CUDA_MOE_EXPERT_MATMUL_H_
#define TANDEM_KERNELS_CUDA_MOE_EXPERT_MATMUL_H_

#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/quantize_rows.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kFewTokens = 8;

// All rows of x: up has one per token, down one per choice.
inline RowsOfX InputsOf(const ExpertMatMulParams& params) {
  const Weight& weight = params.projections[0].weight;
  return {.x = params.x,
          .rows = params.weights != nullptr ? params.tokens * params.top_k : params.tokens,
          .x_stride = params.x_stride,
          .columns = {.begin = weight.col_begin, .count = weight.col_count}};
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_EXPERT_MATMUL_H_
