// Products of a few rows of packs with the inputs of a few tokens, straight from memory.
//
// A lane has one row, or two that share the inputs it reads (row_tasks.h). It asks for several of
// its groups of 32 before it multiplies the first of them.
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
#include "kernels/cuda/matmul/row_tasks.h"

namespace tandem::kernels::cuda {

template <tensor::Type kType, int kTokens, int kRowsOfLane>
class LaneRows : public RowsOfWarp<kTokens, kRowsOfLane> {
 public:
  using typename RowsOfWarp<kTokens, kRowsOfLane>::Sums;
  using RowsOfWarp<kTokens, kRowsOfLane>::kRows;
  using RowsOfWarp<kTokens, kRowsOfLane>::kRowStep;

  __device__ __forceinline__ explicit LaneRows(const BlockMatVecInputs& in)
      : in_(in), lane_(threadIdx.x % kPartialSums) {}

  // row(task, i) points to row i of a task, i below kRows, or to any row if it has none; i / 4 is
  // the first index of the sums. Calls use(task, partial sums of this lane) for every task, in
  // order. All lanes call it, once, when the inputs are there.
  template <typename Row, typename Use>
  __device__ __forceinline__ void ForEachTask(const WarpTasks& tasks, Row row, Use use) {
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
      use(task, sums);
    }
  }

 private:
  // Groups of a row that a lane asks for at once: about as many as registers hold.
  static constexpr uint32_t kAtOnce =
      kTokens * kRowsOfLane == 1 ? 4 : (kTokens * kRowsOfLane <= 4 ? 2 : 1);

  // Adds the products of every eighth of kGroups groups of each row with those of all tokens.
  template <uint32_t kGroups>
  __device__ __forceinline__ void AddProducts(uint32_t first, Sums& sums) const {
    WeightGroup<kType> weights[kGroups][kRowsOfLane];
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i) {
#pragma unroll
      for (uint32_t r = 0; r < kRowsOfLane; ++r)
        weights[i][r] = LoadGroup<kType>(rows_[r], first + kPartialSums * i, lane_);
    }
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      const uint32_t token = min(t, in_.tokens - 1);
      const Int8Group* const from =
          in_.x + static_cast<size_t>(token) * in_.groups + (first - in_.first_group);
      Int8Group x[kGroups];
#pragma unroll
      for (uint32_t i = 0; i < kGroups; ++i) x[i] = LoadInt8Group(from + kPartialSums * i);
#pragma unroll
      for (uint32_t i = 0; i < kGroups; ++i) {
#pragma unroll
        for (uint32_t r = 0; r < kRowsOfLane; ++r)
          sums[r][t] = MultiplyAdd(weights[i][r], x[i], sums[r][t]);
      }
    }
  }

  const BlockMatVecInputs& in_;
  const uint32_t lane_;
  const std::byte* rows_[kRowsOfLane];
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_LANE_ROWS_H_
