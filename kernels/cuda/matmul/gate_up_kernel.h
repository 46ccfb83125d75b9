// The kernel of gate_up.h: that of block_product.h with another end. The upper half of a tile's
// rows are of gate, the lower the same of up. Its .cu files instantiate it for some types each, so
// that they compile in parallel.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_KERNEL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_KERNEL_H_

#include <cstdint>

#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/matmul/activated_row.h"
#include "kernels/cuda/matmul/bf16_tile.h"
#include "kernels/cuda/matmul/tile_shapes.h"

namespace tandem::kernels::cuda {

// Grid: as BlockProductKernel's.
template <tensor::Type kType, typename Shape>
__global__ void __launch_bounds__(kTileThreads, Shape::kBlocks)
    GateUpKernel(const __grid_constant__ GateUpTask task) {
  constexpr uint32_t kRows = Shape::kRows / 2;  // of each weight
  const GateAndUp& weights = task.weights;
  SharedArena arena;
  const uint32_t first_token = blockIdx.x * Shape::kTokens, first_row = blockIdx.y * kRows;
  const TileSums<Shape> sums(arena);
  Bf16Tile<kType, Shape> tile(task.x, first_token);
  const auto row_of = [&](uint32_t i) {
    return RowOrLast(i < kRows ? weights.gate : weights.up, first_row + i % kRows);
  };
  tile.Multiply(row_of, sums);
  for (uint32_t i = threadIdx.x; i < kRows * Shape::kTokens; i += kTileThreads) {
    const uint32_t at = i % kRows, row = first_row + at, token = i / kRows;
    if (row >= weights.gate.rows || first_token + token >= task.x.tokens) continue;
    *task.to.At(first_token + token, row) =
        FloatToBf16(ActivatedValue(weights, row, sums.Sum(at, token), sums.Sum(kRows + at, token)));
  }
}

template <tensor::Type kType>
void LaunchGateUp(Stream& stream, const GateUpTask& task) {
  ForProductShape<LowTile>(stream, task.x.tokens, 2 * task.weights.gate.rows, [&](auto shape) {
    using Shape = decltype(shape);
    const dim3 grid(PiecesOf<Shape>(task.x.tokens),
                    Blocks(2 * task.weights.gate.rows, Shape::kRows));
    stream.Launch("gate_up", &GateUpKernel<kType, Shape>, grid, kTileThreads,
                  SharedBytes<float>(TileSums<Shape>::kRoom), task);
  });
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_KERNEL_H_
