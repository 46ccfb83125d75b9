// The kernel of grouped_gemm.h; .cu files instantiate it for some types each, so that they compile
// in parallel.
#ifndef TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_KERNEL_H_
#define TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_KERNEL_H_

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/moe/expert_choices.h"
#include "kernels/cuda/moe/grouped_gemm.h"
#include "kernels/cuda/moe/grouped_tile.h"

namespace tandem::kernels::cuda {

// Blocks of a multiprocessor that registers allow: the sums take 8 kInputTiles of each thread.
constexpr int GroupedGemmBlocks(uint32_t input_tiles) { return input_tiles > 8 ? 2 : 3; }

// Grid: (runs of rows, pieces, projections).
template <tensor::Type kType, uint32_t kInputTiles>
__global__ void __launch_bounds__(kGroupedTileThreads, GroupedGemmBlocks(kInputTiles))
    GroupedGemmKernel(const __grid_constant__ GroupedGemmArgs a) {
  FollowEarlierLaunches();
  using Tile = GroupedTile<kType, kInputTiles>;
  const RowPiece piece = a.pieces.Piece(blockIdx.y);
  if (piece.count == 0) return;  // the whole block
  const ExpertProjection& projection = a.p.projections[blockIdx.z];
  const uint32_t rows = projection.weight.rows;
  const uint32_t first = blockIdx.x * kGroupedTileRows + threadIdx.x / kWarp * 32;
  SharedArena arena;
  Tile tile(arena.Take<uint4>(Tile::kRoom), piece.count);
  // Where each input is; those beyond the end repeat the last one.
  const SharedArray<uint32_t> inputs = arena.Take<uint32_t>(8 * kInputTiles);
  for (uint32_t i = threadIdx.x; i < 8 * kInputTiles; i += kGroupedTileThreads) {
    inputs[i] = a.pieces.RowOfX(piece, min(i, piece.count - 1));
  }
  __syncthreads();
  tile.Multiply(
      projection.weight.cols, a.window.first, a.window.padded,
      [&](uint32_t i) { return ExpertRow(projection, piece.matrix, first + i); },
      [&](uint32_t i) { return a.x + static_cast<size_t>(inputs[i]) * a.window.padded; });
  tile.ForEachSum([&](uint32_t row, uint32_t input, float sum) {
    if (first + row >= rows) return;
    const size_t choice = a.pieces.RowOfY(piece, input);
    projection.y[choice * rows + first + row] =
        sum + ExpertBias(projection, piece.matrix, first + row);
  });
}

template <tensor::Type kType>
void LaunchGroupedGemm(Stream& stream, const GroupedGemmArgs& args) {
  const dim3 grid(Blocks(args.p.projections[0].weight.rows, kGroupedTileRows), args.pieces.most,
                  args.p.num_projections);
  const auto launch = [&](auto input_tiles) {
    constexpr uint32_t kInputTiles = decltype(input_tiles)::value;
    stream.LaunchEarly("grouped_gemm", &GroupedGemmKernel<kType, kInputTiles>, grid,
                       kGroupedTileThreads,
                       SharedBytes<uint4>(GroupedTile<kType, kInputTiles>::kRoom) +
                           SharedBytes<uint32_t>(8 * kInputTiles),
                       args);
  };
  args.pieces.size <= 64 ? launch(std::integral_constant<uint32_t, 8>())
                         : launch(std::integral_constant<uint32_t, 16>());
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchGroupedGemmOf32(Stream& stream, tensor::Type type, const GroupedGemmArgs& args);
bool LaunchGroupedGemmOf256(Stream& stream, tensor::Type type, const GroupedGemmArgs& args);
bool LaunchGroupedGemmOfGrids(Stream& stream, tensor::Type type, const GroupedGemmArgs& args);
bool LaunchGroupedGemmOfFewBits(Stream& stream, tensor::Type type, const GroupedGemmArgs& args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_KERNEL_H_
