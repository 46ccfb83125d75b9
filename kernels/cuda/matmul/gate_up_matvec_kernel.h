// The kernel of gate_up.h for one token: the GEMV with another end. A block has the same 32 rows of
// gate and of up, a group of the activated row. Its .cu files instantiate it for some types each,
// so that they compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_MATVEC_KERNEL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_MATVEC_KERNEL_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/quantize_group.h"
#include "kernels/cuda/matmul/activated_row.h"
#include "kernels/cuda/matmul/lane_rows.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kGateUpRows = 32;  // of each weight, of a block
inline constexpr uint32_t kGateUpThreads = kGateUpRows * kPartialSums;
// Blocks that a multiprocessor runs at a time.
inline constexpr uint32_t kGateUpBlocks = 2;

template <tensor::Type kType>
__global__ void __launch_bounds__(kGateUpThreads, kGateUpBlocks)
    GateUpMatVecKernel(const __grid_constant__ GateUpMatVecTask task) {
  FollowEarlierLaunches();
  using Rows = LaneRows<kType, 2>;  // of gate, and of up
  const GateAndUp& weights = task.weights;
  SharedArena arena;
  const uint32_t warp = threadIdx.x / kWarp;
  const SharedArray<float> values = arena.Take<float>(kGateUpRows);
  Rows rows(task.inputs);
  const auto row = [&](uint32_t group, uint32_t i) {
    return RowOrLast(i < Rows::kRowStep ? weights.gate : weights.up,
                     group * kGateUpRows + warp * Rows::kRowStep + i % Rows::kRowStep);
  };
  const RowTasks tasks = {blockIdx.x, gridDim.x,
                          (weights.gate.rows + kGateUpRows - 1) / kGateUpRows};
  rows.ForEachTask(tasks, row, [&](uint32_t group, const typename Rows::Sums& sums) {
    const uint32_t row_of_group = threadIdx.x / kPartialSums;
    __syncthreads();  // the previous group's values have been read
    if (threadIdx.x % kPartialSums == 0) {
      values[row_of_group] =
          ActivatedValue(weights, group * kGateUpRows + row_of_group, sums[0], sums[1]);
    }
    __syncthreads();
    if (warp == 0) QuantizeGroupOfWarp(values[threadIdx.x], task.to + group);
  });
}

template <tensor::Type kType>
void LaunchGateUpMatVec(Stream& stream, const GateUpMatVecTask& task) {
  const uint32_t groups = Blocks(task.weights.gate.rows, kGateUpRows);
  stream.LaunchEarly("gate_up_matvec", &GateUpMatVecKernel<kType>,
                     std::min(groups, stream.multiprocessors() * kGateUpBlocks), kGateUpThreads,
                     SharedBytes<float>(kGateUpRows), task);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_MATVEC_KERNEL_H_
