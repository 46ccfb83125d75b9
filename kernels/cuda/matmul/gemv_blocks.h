// The matrix-vector kernel for block-quantised weights; its .cu files instantiate it for some types
// each, so that they compile in parallel.
//
// Eight lanes share a row, each with one of its partial sums (device/partial_sums.h). A lane
// unpacks one group of 32 of each of its rows at a time, scales in registers, and multiplies it
// with the group of every token.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/store_sum.h"

namespace tandem::kernels::cuda {

// Rows of x as groups: (tokens, groups), the first of which is group first_group of the weight.
struct BlockMatVecInputs {
  const Int8Group* x;
  uint32_t tokens;
  uint32_t first_group;
  uint32_t groups;
};

struct BlockMatVecTask {
  MatVecParts parts;
  BlockMatVecInputs inputs;
};

inline constexpr uint32_t kBlockMatVecThreads = 128;

// Adds the products of this lane's groups of some rows of a weight with those of all tokens.
template <tensor::Type kType, int kTokens, int kRows>
__device__ __forceinline__ void AddProducts(const BlockMatVecInputs& in,
                                            const std::byte* const (&rows)[kRows],
                                            float (&sums)[kRows][kTokens]) {
  const uint32_t lane = threadIdx.x % kPartialSums;
#pragma unroll kTokens == 1 ? 4 : 2
  for (uint32_t g = FirstGroupOf(lane, in.first_group); g < in.first_group + in.groups;
       g += kPartialSums) {
    WeightGroup<kType> weights[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) weights[r] = LoadGroup<kType>(rows[r], g, lane);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      const uint32_t token = min(static_cast<uint32_t>(t), in.tokens - 1);
      const Int8Group x =
          LoadInt8Group(in.x + static_cast<size_t>(token) * in.groups + (g - in.first_group));
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r][t] = MultiplyAdd(weights[r], x, sums[r][t]);
    }
  }
}

// Block (x, y): rows from x kRows kRowStep of part y.
template <tensor::Type kType, int kTokens, int kRows>
__device__ __forceinline__ void MultiplyRows(const BlockMatVecTask& task, const MatVecPart& part) {
  constexpr uint32_t kRowStep = kBlockMatVecThreads / kPartialSums;
  const uint32_t first = blockIdx.x * kRowStep * kRows;
  if (first >= part.rows) return;  // the whole block; parts may have different heights
  const uint32_t lane = threadIdx.x % kPartialSums, row = first + threadIdx.x / kPartialSums;
  const std::byte* rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) rows[r] = RowOrLast(part, row + r * kRowStep);
  float sums[kRows][kTokens] = {};
  AddProducts<kType, kTokens, kRows>(task.inputs, rows, sums);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      const float sum = TotalOfLanes(sums[r][t]);
      const bool mine = lane == t && t < task.inputs.tokens;
      if (mine && row + r * kRowStep < part.rows) StoreSum(part, row + r * kRowStep, t, sum);
    }
  }
}

template <tensor::Type kType, int kTokens, int kRows>
__global__ void __launch_bounds__(kBlockMatVecThreads, 4)
    BlockMatVecKernel(const __grid_constant__ BlockMatVecTask task) {
  MultiplyRows<kType, kTokens, kRows>(task, task.parts.part[blockIdx.y]);
}

// Parts of several types of a list: a block runs the code for its part's.
template <typename Types, int kTokens, int kRows>
__global__ void __launch_bounds__(kBlockMatVecThreads, 4)
    MixedMatVecKernel(const __grid_constant__ BlockMatVecTask task) {
  const MatVecPart& part = task.parts.part[blockIdx.y];
  ForType(Types(), part.type,
          [&](auto type) { MultiplyRows<decltype(type)::value, kTokens, kRows>(task, part); });
}

// launch(tokens, rows of a lane, grid), the first two as integral_constants.
template <typename Launch>
void ForMatVecShape(const BlockMatVecTask& task, Launch launch_kernel) {
  uint32_t rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) rows = std::max(rows, task.parts.part[i].rows);
  const auto launch = [&](auto tokens, auto rows_of_lane) {
    const uint32_t rows_of_block = kBlockMatVecThreads / kPartialSums * rows_of_lane.value;
    launch_kernel(tokens, rows_of_lane, dim3(Blocks(rows, rows_of_block), task.parts.count));
  };
  // Two rows share the inputs that a lane loads.
  if (task.inputs.tokens == 1) {
    launch(std::integral_constant<int, 1>(), std::integral_constant<int, 1>());
  } else if (task.inputs.tokens == 2) {
    launch(std::integral_constant<int, 2>(), std::integral_constant<int, 2>());
  } else {
    launch(std::integral_constant<int, kMaxBlockMatVecTokens>(), std::integral_constant<int, 2>());
  }
}

template <tensor::Type kType>
void LaunchBlockMatVec(Stream& stream, const BlockMatVecTask& task) {
  ForMatVecShape(task, [&](auto tokens, auto rows, dim3 grid) {
    stream.Launch("matvec_blocks",
                  &BlockMatVecKernel<kType, decltype(tokens)::value, decltype(rows)::value>, grid,
                  kBlockMatVecThreads, 0, task);
  });
}

template <typename Types>
void LaunchMixedMatVec(Stream& stream, const BlockMatVecTask& task) {
  ForMatVecShape(task, [&](auto tokens, auto rows, dim3 grid) {
    stream.Launch("matvec_mixed",
                  &MixedMatVecKernel<Types, decltype(tokens)::value, decltype(rows)::value>, grid,
                  kBlockMatVecThreads, 0, task);
  });
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
bool LaunchBlockMatVecOf256(Stream& stream, tensor::Type type, const BlockMatVecTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
