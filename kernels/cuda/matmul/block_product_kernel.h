// The kernel of block_product.h; its .cu files instantiate it for some types each, so that they
// compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_KERNEL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_KERNEL_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/bf16_tile.h"
#include "kernels/cuda/matmul/block_product_task.h"
#include "kernels/cuda/matmul/rope_pair.h"
#include "kernels/cuda/matmul/rope_units.h"
#include "kernels/cuda/matmul/store_sum.h"
#include "kernels/cuda/matmul/tile_shapes.h"

namespace tandem::kernels::cuda {

// Stores a tile's sums by pairs of rows, of which a thread has one.
template <typename Shape>
__device__ __forceinline__ void StorePairs(const BlockProductTask& task, const MatVecPart& part,
                                           const TileSums<Shape>& sums) {
  constexpr uint32_t kPairs = Shape::kRows / 2;
  static_assert(kTileThreads % kPairs == 0);
  const RopeUnits<Shape::kRows> units(task.end, blockIdx.z);
  const uint32_t row = units.FirstOfPair(threadIdx.x % kPairs), other = row + units.Distance();
  const RopePair pair(task.end, part, blockIdx.z, units, blockIdx.y, row);
  const uint32_t first_token = blockIdx.x * Shape::kTokens;
  const uint32_t tokens = min(Shape::kTokens, task.x.tokens - first_token);
#pragma unroll 1
  for (uint32_t t = threadIdx.x / kPairs; t < tokens; t += kTileThreads / kPairs)
    pair.Store(first_token + t, sums.Sum(row, t), sums.Sum(other, t));
}

// Stores a tile's sums, of any type of weights.
template <typename Shape>
__device__ __forceinline__ void StoreTile(const BlockProductTask& task, const MatVecPart& part,
                                          const TileSums<Shape>& sums) {
  if (task.end.on) return StorePairs(task, part, sums);
  const uint32_t first_token = blockIdx.x * Shape::kTokens, first_row = blockIdx.y * Shape::kRows;
  for (uint32_t i = threadIdx.x; i < Shape::kRows * Shape::kTokens; i += kTileThreads) {
    const uint32_t row = i % Shape::kRows, token = i / Shape::kRows;
    if (first_row + row >= part.rows || first_token + token >= task.x.tokens) continue;
    StoreSum(part, first_row + row, first_token + token, sums.Sum(row, token));
  }
}

// Grid: (pieces of tokens, runs of a weight's rows, parts): blocks with the same rows run at the
// same time, and all but one find them in the L2 cache. A block runs the code for its part's type,
// one of a list.
template <typename Types, typename Shape>
__global__ void __launch_bounds__(kTileThreads, Shape::kBlocks)
    BlockProductKernel(const __grid_constant__ BlockProductTask task) {
  const MatVecPart& part = task.parts.part[blockIdx.z];
  if (blockIdx.y * Shape::kRows >= part.rows) return;  // parts may have different heights
  SharedArena arena;
  const TileSums<Shape> sums(arena);
  const RopeUnits<Shape::kRows> units(task.end, blockIdx.z);
  ForType(Types(), part.type, [&](auto type) {
    Bf16Tile<decltype(type)::value, Shape> tile(task.x, blockIdx.x * Shape::kTokens);
    tile.Multiply([&](uint32_t i) { return RowOrLast(part, units.Row(blockIdx.y, i)); }, sums);
  });
  StoreTile(task, part, sums);
}

template <typename Types>
void LaunchBlockProduct(Stream& stream, const BlockProductTask& task) {
  uint32_t most_rows = 0, all_rows = 0;
  for (uint32_t i = 0; i < task.parts.count; ++i) {
    most_rows = std::max(most_rows, task.parts.part[i].rows);
    all_rows += task.parts.part[i].rows;
  }
  ForProductShape<LowestTile>(stream, task.x.tokens, all_rows, [&](auto shape) {
    using Shape = decltype(shape);
    const dim3 grid(PiecesOf<Shape>(task.x.tokens), Blocks(most_rows, Shape::kRows),
                    task.parts.count);
    stream.Launch("block_product", &BlockProductKernel<Types, Shape>, grid, kTileThreads,
                  SharedBytes<float>(TileSums<Shape>::kRoom), task);
  });
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_KERNEL_H_
