// The tile kernel for block-quantised weights (device/int8_tile.h); its .cu files instantiate it
// for some types each, so that they compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MOE_BLOCK_GEMM_KERNEL_H_
#define TANDEM_KERNELS_CUDA_MOE_BLOCK_GEMM_KERNEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/int8_tile.h"
#include "kernels/cuda/matmul/store_sum.h"
#include "kernels/cuda/moe/block_gemm.h"

namespace tandem::kernels::cuda {

struct BlockGemmTask {
  MatVecParts parts;
  GemmInputs x;
  RowPieces rows;  // of x and y
  GroupRange groups;
};

// Grid: (pieces, runs of a weight's rows, parts): blocks with the same rows of a weight run at the
// same time, and all but one find them in the L2 cache.
template <tensor::Type kType, uint32_t kRows, uint32_t kInputs>
__global__ void __launch_bounds__(Int8TileThreads(kRows), Int8TileBlocks(kRows))
    BlockGemmKernel(const __grid_constant__ BlockGemmTask task) {
  using Tile = Int8Tile<kType, kRows, kInputs>;
  const RowPiece piece = task.rows.Piece(blockIdx.x);
  const MatVecPart& part = task.parts.part[blockIdx.z];
  const uint32_t first_row = blockIdx.y * kRows;
  // The whole block; parts may have different heights.
  if (first_row >= part.rows || piece.count == 0) return;
  SharedArena arena;
  Tile tile(arena.Take<uint4>(Tile::kRoom));
  tile.Multiply(
      task.groups,
      [&](uint32_t i) { return RowOrLast(PartOfMatrix(part, piece.matrix), first_row + i); },
      piece.count, task.x.groups,
      [&](uint32_t i) { return task.rows.RowOfX(piece, i) * task.x.groups_of_row; });
  tile.ForEachSum([&](uint32_t i, uint32_t j, float sum) {
    const uint32_t row = first_row + i;
    if (row >= part.rows || j >= piece.count) return;
    StoreSum(PartOfMatrix(part, piece.matrix), row, task.rows.RowOfY(piece, j), sum);
  });
}

// launch(rows, inputs, grid) for the shape of the tiles, the first two as integral_constants.
template <typename Launch>
void ForTileShape(const Stream& stream, const BlockGemmTask& task, Launch launch_kernel) {
  uint32_t most_rows = 0, all_rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) {
    most_rows = std::max(most_rows, task.parts.part[i].rows);
    all_rows += task.parts.part[i].rows;
  }
  const bool tall = FillTallTiles(stream, all_rows, Blocks(task.rows.rows, task.rows.size));
  const auto launch = [&](auto rows, auto inputs) {
    launch_kernel(rows, inputs,
                  dim3(task.rows.most, Blocks(most_rows, rows.value), task.parts.count));
  };
  constexpr std::integral_constant<uint32_t, 16> k16;
  constexpr std::integral_constant<uint32_t, 32> k32;
  constexpr std::integral_constant<uint32_t, 64> k64;
  if (task.rows.size == 16) {
    launch(k32, k16);
  } else {
    tall ? launch(k64, k32) : launch(k32, k32);
  }
}

template <tensor::Type kType>
void LaunchBlockGemm(Stream& stream, const BlockGemmTask& task) {
  ForTileShape(stream, task, [&](auto rows, auto inputs, dim3 grid) {
    constexpr uint32_t kRows = decltype(rows)::value, kInputs = decltype(inputs)::value;
    stream.Launch("block_gemm", &BlockGemmKernel<kType, kRows, kInputs>, grid,
                  Int8TileThreads(kRows),
                  SharedBytes<uint4>(Int8Tile<kType, kRows, kInputs>::kRoom), task);
  });
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockGemmOf32(Stream& stream, tensor::Type type, const BlockGemmTask& task);
bool LaunchBlockGemmOf256(Stream& stream, tensor::Type type, const BlockGemmTask& task);
bool LaunchBlockGemmOfGrids(Stream& stream, tensor::Type type, const BlockGemmTask& task);
bool LaunchBlockGemmOfFewBits(Stream& stream, tensor::Type type, const BlockGemmTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_BLOCK_GEMM_KERNEL_H_
