// Grouped products for many tokens, up: a warp has 32 rows of an expert and up to 64 tokens that
// chose it.
// Floor: 2 * choices * rows * col_count operations on tensor cores; reads the rows of every expert
// once per 64 tokens that chose it.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/round_rows.h"
#include "kernels/cuda/moe/grouped_gemm.h"

namespace tandem::kernels::cuda {
namespace {

using Tile = ProductTile<2, 8>;
constexpr uint32_t kWarps = 4;

// Grid: (runs of rows, tiles, projections).
template <tensor::Type kType>
__global__ void __launch_bounds__(kWarps* kWarp) GroupedGemmUpKernel(const GroupedGemmArgs a) {
  const ExpertTile work = a.groups.tiles[blockIdx.y];
  if (work.count == 0) return;  // the whole block; there are no barriers
  const ExpertProjection& projection = a.p.projections[blockIdx.z];
  const uint32_t rows = projection.weight.rows;
  const uint32_t first = (blockIdx.x * kWarps + threadIdx.x / kWarp) * Tile::kRows;
  if (first >= rows) return;  // the whole warp
  Tile tile;
  MultiplyExpertTile<kType>(a, projection, work, first, tile);
  tile.ForEach([&](uint32_t row, uint32_t input, float sum) {
    if (first + row >= rows || input >= work.count) return;
    const uint32_t choice = __ldg(a.groups.order + work.first + input);
    projection.y[static_cast<size_t>(choice) * rows + first + row] =
        sum + ExpertBias(projection, work.expert, first + row);
  });
}

}  // namespace

GroupedGemmArgs PrepareGroupedGemm(Stream& stream, const ExpertMatMulParams& params,
                                   uint32_t run_tokens, uint32_t tile) {
  const Weight& weight = params.projections[0].weight;
  GroupedGemmArgs args = {params, ColumnWindow(weight), ChoiceGroups(params, run_tokens, tile),
                          nullptr};
  const uint32_t rows = params.weights != nullptr ? params.tokens * params.top_k : params.tokens;
  const size_t tiles = args.groups.TileBytes(), order = args.groups.OrderBytes(params);
  std::byte* const scratch =
      stream.Scratch(tiles + order + size_t{rows} * args.window.padded * sizeof(uint16_t));
  if (scratch == nullptr) return args;  // a plan pass, which launches nothing
  args.groups.tiles = reinterpret_cast<ExpertTile*>(scratch);
  args.groups.order = reinterpret_cast<uint32_t*>(scratch + tiles);
  auto* const x = reinterpret_cast<uint16_t*>(scratch + tiles + order);
  args.x = x;
  EncodeChoiceGroups(stream, params, args.groups);
  EncodeRoundRows(stream, {.x = params.x,
                           .rows = rows,
                           .outer_stride = params.x_stride,
                           .count = weight.col_count,
                           .shift = args.window.begin - args.window.first,
                           .padded = args.window.padded,
                           .out = x});
  return args;
}

void EncodeGroupedGemmUp(Stream& stream, const ExpertMatMulParams& params) {
  const GroupedGemmArgs args = PrepareGroupedGemm(stream, params, params.tokens, Tile::kInputs);
  const Weight& weight = params.projections[0].weight;
  const dim3 grid(Blocks(weight.rows, kWarps * Tile::kRows), args.groups.most_tiles,
                  params.num_projections);
  DispatchType(weight.type, [&](auto type) {
    if constexpr (type() != tensor::Type::kF32) {
      stream.Launch("grouped_gemm_up", &GroupedGemmUpKernel<type()>, grid, kWarps * kWarp, 0, args);
    }
  });
}

}  // namespace tandem::kernels::cuda
