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
  const Int8Group* x;
  uint32_t tokens;
  uint32_t x_stride;
  GroupRange groups;
};

// Grid: (runs of tokens, runs of rows, parts): blocks with the same rows run at the same time, and
// all but one find them in the L2 cache.
template <tensor::Type kType, uint32_t kRows, uint32_t kTokens>
__global__ void __launch_bounds__(kInt8TileThreads, Int8TileBlocks(kRows, kTokens))
    BlockGemmKernel(const __grid_constant__ BlockGemmTask task) {
  using Tile = Int8Tile<kType, kRows, kTokens>;
  const MatVecPart& part = task.parts.part[blockIdx.z];
  const uint32_t first_row = blockIdx.y * kRows, first_token = blockIdx.x * kTokens;
  if (first_row >= part.rows) return;  // the whole block; parts may have different heights
  SharedArena arena;
  Tile tile(arena.Take<uint4>(Tile::kRoom));
  tile.Multiply(
      task.groups,
      [&](uint32_t i) {
        return part.weight + min(first_row + i, part.rows - 1) * part.row_stride_bytes;
      },
      [&](uint32_t group) {
        return task.x + static_cast<size_t>(group) * task.x_stride + first_token;
      });
  tile.ForEachSum([&](uint32_t i, uint32_t j, float sum) {
    const uint32_t row = first_row + i, token = first_token + j;
    if (row < part.rows && token < task.tokens) StoreSum(part, row, token, sum);
  });
}

template <tensor::Type kType, uint32_t kRows, uint32_t kTokens>
void LaunchBlockGemmTiles(Stream& stream, const BlockGemmTask& task, uint32_t rows) {
  const dim3 grid(Blocks(task.tokens, kTokens), Blocks(rows, kRows), task.parts.count);
  stream.Launch("gemm_blocks", &BlockGemmKernel<kType, kRows, kTokens>, grid, kInt8TileThreads,
                SharedBytes<uint4>(Int8Tile<kType, kRows, kTokens>::kRoom), task);
}

template <tensor::Type kType>
void LaunchBlockGemm(Stream& stream, const BlockGemmTask& task) {
  uint32_t most_rows = 0, all_rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) {
    most_rows = std::max(most_rows, task.parts.part[i].rows);
    all_rows += task.parts.part[i].rows;
  }
  static_assert(kGemmTileTokens == 32);
  // Tall tiles read the inputs less often, but must not leave multiprocessors idle.
  const auto fills = [&](uint32_t rows, uint32_t tokens) {
    return all_rows / rows * Blocks(task.tokens, tokens) >= stream.multiprocessors();
  };
  if (task.tokens <= kGemmTileTokens / 2) {
    fills(64, 16) ? LaunchBlockGemmTiles<kType, 64, 16>(stream, task, most_rows)
                  : LaunchBlockGemmTiles<kType, 32, 16>(stream, task, most_rows);
  } else {
    fills(64, 32) ? LaunchBlockGemmTiles<kType, 64, 32>(stream, task, most_rows)
                  : LaunchBlockGemmTiles<kType, 32, 32>(stream, task, most_rows);
  }
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockGemmOf32(Stream& stream, tensor::Type type, const BlockGemmTask& task);
bool LaunchBlockGemmOf256(Stream& stream, tensor::Type type, const BlockGemmTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMM_BLOCKS_H_
