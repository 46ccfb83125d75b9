// The tile kernel for block-quantised weights (device/int8_tile.h); its .cu files instantiate it
// for some types each, so that they compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMM_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMM_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/int8_tile.h"
#include "kernels/cuda/matmul/gemm.h"
#include "kernels/cuda/matmul/store_sum.h"

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
__global__ void __launch_bounds__(kInt8TileThreads, Int8TileBlocks(kRows, kInputs))
    BlockGemmKernel(const __grid_constant__ BlockGemmTask task) {
  using Tile = Int8Tile<kType, kRows, kInputs>;
  const RowPiece piece = task.rows.Piece(blockIdx.x);
  const MatVecPart part = PartOfMatrix(task.parts.part[blockIdx.z], piece.matrix);
  const uint32_t first_row = blockIdx.y * kRows;
  // The whole block; parts may have different heights.
  if (first_row >= part.rows || piece.count == 0) return;
  SharedArena arena;
  Tile tile(arena.Take<uint4>(Tile::kRoom));
  // Where each input's groups are; inputs beyond the end repeat the last one.
  const SharedArray<uint32_t> inputs = arena.Take<uint32_t>(kInputs);
  if (threadIdx.x < kInputs) {
    const uint32_t row = task.rows.RowOfX(piece, min(threadIdx.x, piece.count - 1));
    inputs[threadIdx.x] = row * task.x.strides.of_row;
  }
  __syncthreads();
  tile.Multiply(
      task.groups, [&](uint32_t i) { return RowOrLast(part, first_row + i); },
      [&](uint32_t group, uint32_t i) {
        return task.x.groups + static_cast<size_t>(group) * task.x.strides.of_group + inputs[i];
      });
  tile.ForEachSum([&](uint32_t i, uint32_t j, float sum) {
    const uint32_t row = first_row + i;
    if (row < part.rows && j < piece.count) StoreSum(part, row, task.rows.RowOfY(piece, j), sum);
  });
}

template <tensor::Type kType, uint32_t kRows, uint32_t kInputs>
void LaunchBlockGemmTiles(Stream& stream, const BlockGemmTask& task, uint32_t rows) {
  const dim3 grid(task.rows.most, Blocks(rows, kRows), task.parts.count);
  const size_t shared =
      SharedBytes<uint4>(Int8Tile<kType, kRows, kInputs>::kRoom) + SharedBytes<uint32_t>(kInputs);
  stream.Launch("gemm_blocks", &BlockGemmKernel<kType, kRows, kInputs>, grid, kInt8TileThreads,
                shared, task);
}

template <tensor::Type kType>
void LaunchBlockGemm(Stream& stream, const BlockGemmTask& task) {
  uint32_t most_rows = 0, all_rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) {
    most_rows = std::max(most_rows, task.parts.part[i].rows);
    all_rows += task.parts.part[i].rows;
  }
  const bool tall = FillTallTiles(stream, all_rows, Blocks(task.rows.rows, task.rows.size));
  if (task.rows.size == 16) {
    tall ? LaunchBlockGemmTiles<kType, 64, 16>(stream, task, most_rows)
         : LaunchBlockGemmTiles<kType, 32, 16>(stream, task, most_rows);
  } else {
    tall ? LaunchBlockGemmTiles<kType, 64, 32>(stream, task, most_rows)
         : LaunchBlockGemmTiles<kType, 32, 32>(stream, task, most_rows);
  }
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockGemmOf32(Stream& stream, tensor::Type type, const BlockGemmTask& task);
bool LaunchBlockGemmOf256(Stream& stream, tensor::Type type, const BlockGemmTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMM_BLOCKS_H_
