// The matrix-vector kernel for block-quantised weights; its .cu files instantiate it for some types
// each, so that they compile in parallel.
//
// Warps take tasks of four rows, one after another (lane_rows.h). The grid has no more blocks than
// the device runs at a time: a wave of a few blocks would cost as much as a full one.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/lane_rows.h"
#include "kernels/cuda/matmul/rope_pair.h"
#include "kernels/cuda/matmul/rope_units.h"
#include "kernels/cuda/matmul/store_sum.h"

namespace tandem::kernels::cuda {

struct BlockMatVecTask {
  MatVecParts parts;
  BlockMatVecInputs inputs;
  RopeEnd end;
};

inline constexpr uint32_t kBlockMatVecThreads = 128;
inline constexpr uint32_t kBlockMatVecWarps = kBlockMatVecThreads / kWarp;
// Blocks that a multiprocessor runs at a time; registers follow.
inline constexpr uint32_t kBlockMatVecBlocks = 4;

// Block (x, y): every gridDim.x-th run of rows of part y, from x on.
template <tensor::Type kType>
__device__ __forceinline__ void MultiplyRows(const BlockMatVecTask& task, const MatVecPart& part) {
  using Rows = LaneRows<kType, 1>;
  static_assert(Rows::kRows == kMatVecUnit);
  const uint32_t warp = threadIdx.x / kWarp;
  Rows rows(task.inputs);
  const RowTasks tasks = {blockIdx.x * kBlockMatVecWarps + warp, gridDim.x * kBlockMatVecWarps,
                          (part.rows + Rows::kRows - 1) / Rows::kRows};
  const RopeUnits<Rows::kRows> units(task.end, blockIdx.y);
  const auto row = [&](uint32_t run, uint32_t i) { return RowOrLast(part, units.Row(run, i)); };
  rows.ForEachTask(tasks, row, [&](uint32_t run, const typename Rows::Sums& sums) {
    const uint32_t i = threadIdx.x % kWarp / kPartialSums;
    const bool first_lane = threadIdx.x % kPartialSums == 0;
    if (task.end.on) {
      const uint32_t distance = units.Distance();
      const float second = __shfl_down_sync(kAllLanes, sums[0], kPartialSums * distance);
      if (!first_lane || (i & distance) != 0) return;
      RopePair(task.end, part, blockIdx.y, units, run, i).Store(0, sums[0], second);
    } else if (first_lane && run * Rows::kRows + i < part.rows) {
      StoreSum(part, run * Rows::kRows + i, 0, sums[0]);
    }
  });
}

// A block runs the code for its part's type, one of a list.
template <typename Types>
__global__ void __launch_bounds__(kBlockMatVecThreads, kBlockMatVecBlocks)
    BlockMatVecKernel(const __grid_constant__ BlockMatVecTask task) {
  FollowEarlierLaunches();
  const MatVecPart& part = task.parts.part[blockIdx.y];
  ForType(Types(), part.type, [&](auto type) { MultiplyRows<decltype(type)::value>(task, part); });
}

template <typename Types>
void LaunchBlockMatVec(Stream& stream, const BlockMatVecTask& task) {
  uint32_t rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) rows = std::max(rows, task.parts.part[i].rows);
  const uint32_t at_a_time = stream.multiprocessors() * kBlockMatVecBlocks;
  const uint32_t most = std::max<uint32_t>(at_a_time / task.parts.count, 1);
  const uint32_t blocks = Blocks(rows, kBlockMatVecThreads / kPartialSums);
  stream.LaunchEarly("matvec_blocks", &BlockMatVecKernel<Types>,
                     dim3(std::min(blocks, most), task.parts.count), kBlockMatVecThreads, 0, task);
}

// Parts of one type. Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
bool LaunchBlockMatVecOf256(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
bool LaunchBlockMatVecOfGrids(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
bool LaunchBlockMatVecOfFewBits(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
// Parts of several types.
void LaunchMixedMatVec(Stream& stream, const BlockMatVecTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
