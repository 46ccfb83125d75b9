// Products of rows of packs with the inputs of one token, straight from memory.
//
// Eight lanes share a row, each with one of its partial sums (device/partial_sums.h), so a warp has
// four rows at a time, and a lane one of them, or two that share the inputs it reads. It asks for
// several of its groups of 32 before it multiplies the first of them.
//
// Floor: the bytes of the rows are read once. To read 4.4 TB/s with a latency of 0.8 us a
// multiprocessor of 132 needs 27 KB on their way: sixteen warps with four groups each have that in
// types of 4 bits.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_LANE_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_LANE_ROWS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/matmul/gemv.h"

namespace tandem::kernels::cuda {

// Tasks of a warp or a block, of a few rows each: first, first + step, ... below end.
struct RowTasks {
  uint32_t first;
  uint32_t step;
  uint32_t end;
};

template <tensor::Type kType, int kRowsOfLane>
class LaneRows {
 public:
  // Row kRowStep * r + threadIdx.x % kWarp / kPartialSums of a task is a lane's r-th.
  static constexpr uint32_t kRowStep = kWarp / kPartialSums;
  static constexpr uint32_t kRows = kRowStep * kRowsOfLane;
  using Sums = float[kRowsOfLane];

  __device__ __forceinline__ explicit LaneRows(const BlockMatVecInputs& in)
      : in_(in), lane_(threadIdx.x % kPartialSums) {}

  // row(task, i) points to row i of a task, i below kRows, or to any row if it has none. Calls
  // use(task, sums) for every task, in order, with the whole sums of the lane's rows. All lanes
  // call it, once, when the inputs are there.
  template <typename Row, typename Use>
  __device__ __forceinline__ void ForEachTask(const RowTasks& tasks, Row row, Use use) {
    const uint32_t end = in_.first_group + in_.groups;
    for (uint32_t task = tasks.first; task < tasks.end; task += tasks.step) {
#pragma unroll
      for (uint32_t r = 0; r < kRowsOfLane; ++r)
        rows_[r] = row(task, kRowStep * r + threadIdx.x % kWarp / kPartialSums);
      Sums sums = {};
      uint32_t group = FirstGroupOf(lane_, in_.first_group);
#pragma unroll 1
      for (; group + kPartialSums * (kAtOnce - 1) < end; group += kPartialSums * kAtOnce)
        AddProducts<kAtOnce>(group, sums);
#pragma unroll 1
      for (; group < end; group += kPartialSums) AddProducts<1>(group, sums);
#pragma unroll
      for (float& sum : sums) sum = TotalOfLanes(sum);
      use(task, sums);
    }
  }

 private:
  // Groups of a row that a lane asks for at once: about as many as registers hold.
  static constexpr uint32_t kAtOnce = 4 / kRowsOfLane;

  // Adds the products of every eighth of kGroups groups of each row.
  template <uint32_t kGroups>
  __device__ __forceinline__ void AddProducts(uint32_t first, Sums& sums) const {
    WeightGroup<kType> weights[kGroups][kRowsOfLane];
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i) {
#pragma unroll
      for (uint32_t r = 0; r < kRowsOfLane; ++r)
        weights[i][r] = LoadGroup<kType>(rows_[r], first + kPartialSums * i, lane_);
    }
    const Int8Group* const from = in_.x + (first - in_.first_group);
    Int8Group x[kGroups];
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i) x[i] = LoadInt8Group(from + kPartialSums * i);
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i) {
#pragma unroll
      for (uint32_t r = 0; r < kRowsOfLane; ++r)
        sums[r] = MultiplyAdd(weights[i][r], x[i], sums[r]);
    }
  }

  const BlockMatVecInputs& in_;
  const uint32_t lane_;
  const std::byte* rows_[kRowsOfLane];
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_LANE_ROWS_H_
