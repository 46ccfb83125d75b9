// A warp has 32 rows of an expert and up to 64 of the choices of it.
// Floor: 2 * choices * rows * col_count operations on tensor cores; reads the rows of every expert
// once per 64 choices of it.
#include "kernels/cuda/moe/grouped_gemm.h"

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/weight_tiles.h"
#include "kernels/cuda/moe/expert_choices.h"

namespace tandem::kernels::cuda {
namespace {

using Tile = ProductTile<2, kGroupedGemmSize / 8>;
constexpr uint32_t kWarps = 4;

// Grid: (runs of rows, pieces, projections).
template <tensor::Type kType>
__global__ void __launch_bounds__(kWarps* kWarp) GroupedGemmKernel(const GroupedGemmArgs a) {
  const RowPiece piece = a.pieces.Piece(blockIdx.y);
  if (piece.count == 0) return;  // the whole block; there are no barriers
  const ExpertProjection& projection = a.p.projections[blockIdx.z];
  const uint32_t rows = projection.weight.rows;
  const uint32_t first = (blockIdx.x * kWarps + threadIdx.x / kWarp) * Tile::kRows;
  if (first >= rows) return;  // the whole warp
  Tile tile;
  MultiplyTile<kType>([&](uint32_t i) { return ExpertRow(projection, piece.matrix, first + i); },
                      [&](uint32_t i) {
                        const size_t row = a.pieces.RowOfX(piece, min(i, piece.count - 1));
                        return a.x + row * a.window.padded;
                      },
                      projection.weight.cols, a.window, piece.count, tile);
  tile.ForEach([&](uint32_t row, uint32_t input, float sum) {
    if (first + row >= rows || input >= piece.count) return;
    const size_t choice = a.pieces.RowOfY(piece, input);
    projection.y[choice * rows + first + row] =
        sum + ExpertBias(projection, piece.matrix, first + row);
  });
}

}  // namespace

void EncodeGroupedGemm(Stream& stream, const GroupedGemmArgs& args) {
  const Weight& weight = args.p.projections[0].weight;
  const dim3 grid(Blocks(weight.rows, kWarps * Tile::kRows), args.pieces.most,
                  args.p.num_projections);
  using Types = TypeList<tensor::Type::kF16, tensor::Type::kBF16>;
  Types::Dispatch(weight.type, [&](auto type) {
    stream.Launch("grouped_gemm", &GroupedGemmKernel<type()>, grid, kWarps * kWarp, 0, args);
  });
}

}  // namespace tandem::kernels::cuda
