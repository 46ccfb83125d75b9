// Choices of experts on the device: which expert rows a choice multiplies with which input, and the
// sums of "down" over its products (expert_matmul.h).
#ifndef TANDEM_KERNELS_CUDA_MOE_EXPERT_CHOICES_H_
#define TANDEM_KERNELS_CUDA_MOE_EXPERT_CHOICES_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/shared_array.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// This rank's index of an expert id; not below num_experts if another rank has the expert.
__device__ __forceinline__ uint32_t LocalExpert(const ExpertMatMulParams& p, int32_t id) {
  return static_cast<uint32_t>(id) - p.expert_begin;  // wraps around below the first
}

// Row `row` of an expert, or its last row if it has no such row: tiles may extend beyond it.
__device__ __forceinline__ const std::byte* ExpertRow(const ExpertProjection& projection,
                                                      uint32_t expert, uint32_t row) {
  const Weight& weight = projection.weight;
  return static_cast<const std::byte*>(weight.data) + expert * weight.matrix_stride_bytes +
         min(row, weight.rows - 1) * weight.row_stride_bytes;
}

__device__ __forceinline__ float ExpertBias(const ExpertProjection& projection, uint32_t expert,
                                            uint32_t row) {
  if (projection.bias == nullptr || row >= projection.weight.rows) return 0.0f;
  return projection.bias[static_cast<size_t>(expert) * projection.bias_stride + row];
}

// The row of x of a choice: up has one per token, down one per choice.
__device__ __forceinline__ uint32_t InputOfChoice(const ExpertMatMulParams& p, uint32_t choice) {
  return p.weights != nullptr ? choice : choice / p.top_k;
}

// --- down: sums of products ---

// A run of tokens, and the output rows that a block computes for each.
struct SumTask {
  uint32_t token;  // the first
  uint32_t tokens;
  uint32_t row;     // the first
  uint32_t rows;    // some may be beyond the weight's last one
  uint32_t stride;  // between choices in `parts`

  __device__ uint32_t FirstChoice(const ExpertMatMulParams& p) const { return token * p.top_k; }
  __device__ uint32_t Choices(const ExpertMatMulParams& p) const { return tokens * p.top_k; }
};

inline constexpr uint32_t kNoChoice = 0xffffffffu;

// The choices of every token of the run, counted from the run's first, in ascending order of
// experts: those with an expert of this rank, then kNoChoice.
__device__ inline void OrderChoices(const ExpertMatMulParams& p, const SumTask& task,
                                    SharedArray<uint32_t> order) {
  const auto key = [&](uint32_t choice) {
    const uint32_t expert = LocalExpert(p, p.ids[choice]);
    return expert < p.num_experts ? expert : kNoChoice;
  };
  for (uint32_t i = threadIdx.x; i < task.Choices(p); i += blockDim.x) {
    const uint32_t first = task.FirstChoice(p) + i / p.top_k * p.top_k, slot = i % p.top_k;
    const uint32_t mine = key(first + slot);
    uint32_t rank = 0;
    for (uint32_t j = 0; j < p.top_k; ++j) {
      const uint32_t other = key(first + j);
      if (other < mine || (other == mine && j < slot)) ++rank;
    }
    order[i - slot + rank] = mine == kNoChoice ? kNoChoice : i;
  }
}

// Writes y of the run's tokens from `parts`, an array (choices, rows), and `order`, after a
// barrier. Products and sums are rounded apart, so that no compiler's choice to fuse them shows.
template <typename Parts>
__device__ void SumChoices(const ExpertMatMulParams& p, const SumTask& task, Parts parts,
                           SharedArray<uint32_t> order) {
  const uint32_t all_rows = p.projections[0].weight.rows;
  for (uint32_t i = threadIdx.x; i < task.tokens * task.rows; i += blockDim.x) {
    const uint32_t token = i / task.rows, row = i % task.rows;
    if (task.row + row >= all_rows) continue;
    float sum = 0;
    for (uint32_t j = 0; j < p.top_k; ++j) {
      const uint32_t choice = order[token * p.top_k + j];
      if (choice == kNoChoice) break;
      const float weight = p.weights[task.FirstChoice(p) + choice];
      sum = __fadd_rn(sum, __fmul_rn(weight, parts[choice * task.stride + row]));
    }
    p.projections[0].y[static_cast<size_t>(task.token + token) * all_rows + task.row + row] = sum;
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_EXPERT_CHOICES_H_
