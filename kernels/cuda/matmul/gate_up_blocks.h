// The kernels of gate_up.h: the GEMV and the tile kernel with another end. A block has the same 32
// rows of gate and of up, for all or some tokens: a group of the activated rows of each. Its .cu
// files instantiate them for some types each, so that they compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/int8_tile.h"
#include "kernels/cuda/device/quantize_group.h"
#include "kernels/cuda/matmul/gate_up.h"
#include "kernels/cuda/matmul/store_sum.h"
#include "kernels/cuda/matmul/warp_rows.h"
#include "kernels/cuda/rows/activation.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kGateUpRows = 32;  // of each weight, of a block

struct GateUpTask {
  MatVecPart gate;
  MatVecPart up;
  Activation function;
  BlockMatVecInputs inputs;
  Int8Rows to;

  // A value of an activated row; rows beyond the end are columns beyond the next product's.
  __device__ __forceinline__ float Value(uint32_t row, float of_gate, float of_up) const {
    if (row >= gate.rows) return 0.0f;
    return Activated(function, WithBias(gate, row, of_gate), WithBias(up, row, of_up));
  }
};

inline constexpr uint32_t kGateUpThreads = kGateUpRows * kPartialSums;
inline constexpr uint32_t kGateUpWarps = kGateUpThreads / kWarp;
static_assert(kGateUpWarps >= kMaxBlockMatVecTokens);  // a warp rounds a token's group
// Blocks of the GEMV that a multiprocessor runs at a time.
inline constexpr uint32_t kGateUpMatVecBlocks = 2;

template <tensor::Type kType, int kTokens>
__global__ void __launch_bounds__(kGateUpThreads, kGateUpMatVecBlocks)
    GateUpMatVecKernel(const __grid_constant__ GateUpTask task) {
  using Rows = WarpRows<kType, kTokens>;  // of gate, and of up
  SharedArena arena;
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kPartialSums;
  const SharedArray<float> values = arena.Take<float>(kTokens * kGateUpRows);
  Rows rows(task.inputs, arena.Take<uint4>(kGateUpWarps * Rows::kRoom) + warp * Rows::kRoom);
  const auto row = [&](uint32_t group, uint32_t i) {
    return RowOrLast(i < Rows::kRowStep ? task.gate : task.up,
                     group * kGateUpRows + warp * Rows::kRowStep + i % Rows::kRowStep);
  };
  const WarpTasks tasks = {blockIdx.x, gridDim.x, Blocks(task.gate.rows, kGateUpRows)};
  rows.ForEachTask(tasks, row, [&](uint32_t group, const typename Rows::Sums& sums) {
    const uint32_t row_of_group = threadIdx.x / kPartialSums;
    __syncthreads();  // the previous group's values have been read
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      const float gate = TotalOfLanes(sums[0][t]), up = TotalOfLanes(sums[1][t]);
      if (lane != t) continue;
      values[t * kGateUpRows + row_of_group] =
          task.Value(group * kGateUpRows + row_of_group, gate, up);
    }
    __syncthreads();
    if (warp >= kTokens || warp >= task.inputs.tokens) return;  // the whole warp
    QuantizeGroupOfWarp(values[threadIdx.x], task.to.Group(warp, group));
  });
}

// Grid: (runs of tokens, runs of rows).
template <tensor::Type kType, uint32_t kInputs>
__global__ void __launch_bounds__(Int8TileThreads(2 * kGateUpRows), Int8TileBlocks(2 * kGateUpRows))
    GateUpGemmKernel(const __grid_constant__ GateUpTask task) {
  using Tile = Int8Tile<kType, 2 * kGateUpRows, kInputs>;
  SharedArena arena;
  Tile tile(arena.Take<uint4>(Tile::kRoom));
  const BlockMatVecInputs& in = task.inputs;
  const uint32_t first_token = blockIdx.x * kInputs, first_row = blockIdx.y * kGateUpRows;
  tile.Multiply(
      {in.first_group, in.groups},
      [&](uint32_t i) {
        return RowOrLast(i < kGateUpRows ? task.gate : task.up, first_row + i % kGateUpRows);
      },
      {min(in.tokens - first_token, kInputs), in.tokens},
      [&](uint32_t i) { return in.x + (first_token + i); });
  tile.ForEachPair([&](uint32_t i, uint32_t j, float gate, float up) {
    if (first_token + j >= in.tokens) return;  // the whole warp
    QuantizeGroupOfWarp(task.Value(first_row + i, gate, up),
                        task.to.Group(first_token + j, blockIdx.y));
  });
}

template <tensor::Type kType, int kTokens>
void LaunchGateUpMatVec(Stream& stream, const GateUpTask& task) {
  const uint32_t groups = Blocks(task.gate.rows, kGateUpRows);
  const uint32_t at_a_time = stream.multiprocessors() * kGateUpMatVecBlocks;
  stream.LaunchEarly("gate_up_matvec", &GateUpMatVecKernel<kType, kTokens>,
                     std::min(groups, at_a_time), kGateUpThreads,
                     SharedBytes<float>(kTokens * kGateUpRows) +
                         SharedBytes<uint4>(kGateUpWarps * WarpRows<kType, kTokens>::kRoom),
                     task);
}

template <tensor::Type kType, uint32_t kInputs>
void LaunchGateUpGemm(Stream& stream, const GateUpTask& task) {
  const dim3 grid(Blocks(task.inputs.tokens, kInputs), Blocks(task.gate.rows, kGateUpRows));
  stream.Launch("gate_up_gemm", &GateUpGemmKernel<kType, kInputs>, grid,
                Int8TileThreads(2 * kGateUpRows),
                SharedBytes<uint4>(Int8Tile<kType, 2 * kGateUpRows, kInputs>::kRoom), task);
}

template <tensor::Type kType>
void LaunchGateUp(Stream& stream, const GateUpTask& task) {
  const uint32_t tokens = task.inputs.tokens;
  if (tokens == 1) return LaunchGateUpMatVec<kType, 1>(stream, task);
  if (tokens == 2) return LaunchGateUpMatVec<kType, 2>(stream, task);
  if (tokens <= kMaxBlockMatVecTokens)
    return LaunchGateUpMatVec<kType, kMaxBlockMatVecTokens>(stream, task);
  if (GemmTileSize(tokens) == 16) return LaunchGateUpGemm<kType, 16>(stream, task);
  LaunchGateUpGemm<kType, 32>(stream, task);
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchGateUpOf32(Stream& stream, tensor::Type type, const GateUpTask& task);
bool LaunchGateUpOf256(Stream& stream, tensor::Type type, const GateUpTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_BLOCKS_H_
