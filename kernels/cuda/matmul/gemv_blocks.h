// The matrix-vector kernel for block-quantised weights; its .cu files instantiate it for some types
// each, so that they compile in parallel.
//
// Warps take tasks of four or eight rows, one after another (lane_rows.h). The grid has no more
// blocks than the device runs at a time: a wave of a few blocks would cost as much as a full one.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/lane_rows.h"
#include "kernels/cuda/matmul/store_sum.h"

namespace tandem::kernels::cuda {

struct BlockMatVecTask {
  MatVecParts parts;
  BlockMatVecInputs inputs;
};

inline constexpr uint32_t kBlockMatVecThreads = 128;
inline constexpr uint32_t kBlockMatVecWarps = kBlockMatVecThreads / kWarp;
// Blocks that a multiprocessor runs at a time; registers follow.
constexpr uint32_t BlockMatVecBlocks(int tokens, int rows_of_lane) {
  return tokens > 2 && rows_of_lane == 1 ? 3 : 4;
}

// Block (x, y): every gridDim.x-th run of rows of part y, from x on.
template <tensor::Type kType, int kTokens, int kRowsOfLane>
__device__ __forceinline__ void MultiplyRows(const BlockMatVecTask& task, const MatVecPart& part) {
  using Rows = LaneRows<kType, kTokens, kRowsOfLane>;
  const uint32_t warp = threadIdx.x / kWarp;
  Rows rows(task.inputs);
  const WarpTasks tasks = {blockIdx.x * kBlockMatVecWarps + warp, gridDim.x * kBlockMatVecWarps,
                           Blocks(part.rows, Rows::kRows)};
  const auto row = [&](uint32_t run, uint32_t i) { return RowOrLast(part, run * Rows::kRows + i); };
  rows.ForEachTask(tasks, row, [&](uint32_t run, const typename Rows::Sums& sums) {
    const uint32_t lane = threadIdx.x % kPartialSums;
    const uint32_t first = run * Rows::kRows + threadIdx.x % kWarp / kPartialSums;
#pragma unroll
    for (uint32_t r = 0; r < kRowsOfLane; ++r) {
      const uint32_t row_of_part = first + r * Rows::kRowStep;
#pragma unroll
      for (uint32_t t = 0; t < kTokens; ++t) {
        const float sum = TotalOfLanes(sums[r][t]);
        const bool mine = lane == t && t < task.inputs.tokens;
        if (mine && row_of_part < part.rows) StoreSum(part, row_of_part, t, sum);
      }
    }
  });
}

template <tensor::Type kType, int kTokens, int kRowsOfLane>
__global__ void __launch_bounds__(kBlockMatVecThreads, BlockMatVecBlocks(kTokens, kRowsOfLane))
    BlockMatVecKernel(const __grid_constant__ BlockMatVecTask task) {
  FollowEarlierLaunches();
  MultiplyRows<kType, kTokens, kRowsOfLane>(task, task.parts.part[blockIdx.y]);
}

// Parts of several types of a list: a block runs the code for its part's.
template <typename Types, int kTokens, int kRowsOfLane>
__global__ void __launch_bounds__(kBlockMatVecThreads, BlockMatVecBlocks(kTokens, kRowsOfLane))
    MixedMatVecKernel(const __grid_constant__ BlockMatVecTask task) {
  FollowEarlierLaunches();
  const MatVecPart& part = task.parts.part[blockIdx.y];
  ForType(Types(), part.type, [&](auto type) {
    MultiplyRows<decltype(type)::value, kTokens, kRowsOfLane>(task, part);
  });
}

// launch(tokens, rows of a lane, grid), the first two as integral_constants.
template <typename Launch>
void ForMatVecShape(const Stream& stream, const BlockMatVecTask& task, Launch launch_kernel) {
  uint32_t rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) rows = std::max(rows, task.parts.part[i].rows);
  const auto blocks = [&](uint32_t rows_of_lane) {
    return Blocks(rows, kBlockMatVecThreads / kPartialSums * rows_of_lane);
  };
  const auto launch = [&](auto tokens, auto rows_of_lane) {
    const uint32_t at_a_time =
        stream.multiprocessors() * BlockMatVecBlocks(tokens.value, rows_of_lane.value);
    const uint32_t most = std::max<uint32_t>(at_a_time / task.parts.count, 1);
    launch_kernel(tokens, rows_of_lane,
                  dim3(std::min(blocks(rows_of_lane.value), most), task.parts.count));
  };
  // Two rows share the inputs that a lane loads, where that leaves the device enough warps.
  constexpr std::integral_constant<int, 1> k1;
  constexpr std::integral_constant<int, 2> k2;
  constexpr std::integral_constant<int, kMaxBlockMatVecTokens> kMost;
  const bool in_pairs = blocks(2) * task.parts.count >= 2 * stream.multiprocessors();
  if (task.inputs.tokens == 1) {
    launch(k1, k1);
  } else if (task.inputs.tokens == 2) {
    in_pairs ? launch(k2, k2) : launch(k2, k1);
  } else {
    in_pairs ? launch(kMost, k2) : launch(kMost, k1);
  }
}

template <tensor::Type kType>
void LaunchBlockMatVec(Stream& stream, const BlockMatVecTask& task) {
  ForMatVecShape(stream, task, [&](auto tokens, auto rows, dim3 grid) {
    constexpr int kTokens = decltype(tokens)::value, kRows = decltype(rows)::value;
    stream.LaunchEarly("matvec_blocks", &BlockMatVecKernel<kType, kTokens, kRows>, grid,
                       kBlockMatVecThreads, 0, task);
  });
}

template <typename Types>
void LaunchMixedMatVec(Stream& stream, const BlockMatVecTask& task) {
  ForMatVecShape(stream, task, [&](auto tokens, auto rows, dim3 grid) {
    constexpr int kTokens = decltype(tokens)::value, kRows = decltype(rows)::value;
    stream.LaunchEarly("matvec_mixed", &MixedMatVecKernel<Types, kTokens, kRows>, grid,
                       kBlockMatVecThreads, 0, task);
  });
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
bool LaunchBlockMatVecOf256(Stream& stream, tensor::Type type, const BlockMatVecTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
