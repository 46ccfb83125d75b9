// The kernel of block_product.h; its .cu files instantiate it for some types each, so that they
// compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_KERNEL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_KERNEL_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/bf16_tile.h"
#include "kernels/cuda/matmul/block_product_task.h"
#include "kernels/cuda/matmul/store_sum.h"
#include "kernels/cuda/matmul/tile_shapes.h"

namespace tandem::kernels::cuda {

// Grid: (pieces of tokens, runs of a weight's rows, parts): blocks with the same rows run at the
// same time, and all but one find them in the L2 cache.
template <tensor::Type kType, typename Shape>
__device__ __forceinline__ void MultiplyPart(const BlockProductTask& task, const MatVecPart& part) {
  using Tile = Bf16Tile<kType, Shape>;
  const uint32_t first_token = blockIdx.x * Shape::kTokens, first_row = blockIdx.y * Shape::kRows;
  if (first_row >= part.rows) return;  // parts may have different heights
  SharedArena arena;
  Tile tile(arena.Take<float>(Tile::kRoom), task.x, first_token);
  tile.Multiply([&](uint32_t i) { return RowOrLast(part, first_row + i); });
  for (uint32_t i = threadIdx.x; i < Shape::kRows * Shape::kTokens; i += Tile::kThreads) {
    const uint32_t row = i % Shape::kRows, token = i / Shape::kRows;
    if (first_row + row >= part.rows || first_token + token >= task.x.tokens) continue;
    StoreSum(part, first_row + row, first_token + token, tile.Sum(row, token));
  }
}

// A block runs the code for its part's type, one of a list.
template <typename Types, typename Shape>
__global__ void __launch_bounds__(kColumnRanges* kWarp, Shape::kBlocks)
    BlockProductKernel(const __grid_constant__ BlockProductTask task) {
  const MatVecPart& part = task.parts.part[blockIdx.z];
  ForType(Types(), part.type,
          [&](auto type) { MultiplyPart<decltype(type)::value, Shape>(task, part); });
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
    // Of any type.
    using Tile = Bf16Tile<tensor::Type::kQ4_0, Shape>;
    stream.Launch("block_product", &BlockProductKernel<Types, Shape>, grid, Tile::kThreads,
                  SharedBytes<float>(Tile::kRoom), task);
  });
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_KERNEL_H_
