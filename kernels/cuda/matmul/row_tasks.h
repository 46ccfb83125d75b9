// What the two ways through rows of packs have in common (lane_rows.h, warp_rows.h): eight lanes
// share a row, each with one of its partial sums (device/partial_sums.h), so a warp has four rows
// at a time, and a lane one or more of them; tasks of a few rows come one after another.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROW_TASKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROW_TASKS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// Rows of x as groups: (tokens, groups), the first of which is group first_group of the weight.
struct BlockMatVecInputs {
  const Int8Group* x;
  uint32_t tokens;
  uint32_t first_group;
  uint32_t groups;
};

// Tasks of a warp or a block, of a few rows each: first, first + step, ... below end.
struct WarpTasks {
  uint32_t first;
  uint32_t step;
  uint32_t end;
};

// kRowsOfLane rows of a lane: row kRowStep * r + threadIdx.x % kWarp / kPartialSums is its r-th.
template <int kTokens, int kRowsOfLane>
struct RowsOfWarp {
  static constexpr uint32_t kRowStep = kWarp / kPartialSums;
  static constexpr uint32_t kRows = kRowStep * kRowsOfLane;
  using Sums = float[kRowsOfLane][kTokens];
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROW_TASKS_H_
