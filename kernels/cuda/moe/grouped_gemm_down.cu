// Grouped products for many tokens, down: a block has 16 rows of the output for a run of tokens;
// its warps divide the run's tiles, each up to 32 tokens that chose one expert.
//
// Floor: 2 * choices * rows * col_count operations on tensor cores; reads the rows of every expert
// once per run.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/moe/grouped_gemm.h"

namespace tandem::kernels::cuda {
namespace {

using Tile = ProductTile<1, 4>;
constexpr uint32_t kWarps = 16;
// Choices per run: 16 sums of each take 64 KiB of shared memory. A longer run would read weights
// less often but lower occupancy.
constexpr uint32_t kMostChoices = 1024;

// Grid: (runs of rows, runs of tokens).
template <tensor::Type kType>
__global__ void __launch_bounds__(kWarps* kWarp) GroupedGemmDownKernel(const GroupedGemmArgs a) {
  const ExpertMatMulParams& p = a.p;
  const ExpertProjection& projection = p.projections[0];
  const uint32_t token = blockIdx.y * a.groups.run_tokens;
  const SumTask task = {token, min(a.groups.run_tokens, p.tokens - token), blockIdx.x * Tile::kRows,
                        Tile::kRows};
  SharedArena arena;
  const uint32_t most = a.groups.run_tokens * p.top_k;
  const SharedArray<float> parts = arena.Take<float>(most * Tile::kRows);
  const SharedArray<uint32_t> order = arena.Take<uint32_t>(most);
  OrderChoices(p, task, order);

  const ExpertTile* const tiles =
      a.groups.tiles + static_cast<size_t>(blockIdx.y) * a.groups.most_tiles;
  for (uint32_t i = threadIdx.x / kWarp; i < a.groups.most_tiles; i += kWarps) {
    const ExpertTile work = tiles[i];
    if (work.count == 0) break;
    Tile tile;
    MultiplyExpertTile<kType>(a, projection, work, task.row, tile);
    tile.ForEach([&](uint32_t row, uint32_t input, float sum) {
      if (input >= work.count) return;
      const uint32_t of_run = __ldg(a.groups.order + work.first + input) - task.FirstChoice(p);
      parts[of_run * Tile::kRows + row] = sum + ExpertBias(projection, work.expert, task.row + row);
    });
  }
  __syncthreads();
  SumChoices(p, task, parts, order);
}

}  // namespace

void EncodeGroupedGemmDown(Stream& stream, const ExpertMatMulParams& params) {
  const uint32_t most_tokens = params.top_k < kMostChoices ? kMostChoices / params.top_k : 1;
  // Runs of equal length.
  const uint32_t run_tokens = Blocks(params.tokens, Blocks(params.tokens, most_tokens));
  const GroupedGemmArgs args = PrepareGroupedGemm(stream, params, run_tokens, Tile::kInputs);
  const Weight& weight = params.projections[0].weight;
  const uint32_t choices = run_tokens * params.top_k;
  const size_t shared = SharedBytes<float>(choices * Tile::kRows) + SharedBytes<uint32_t>(choices);
  const dim3 grid(Blocks(weight.rows, Tile::kRows), args.groups.runs);
  DispatchType(weight.type, [&](auto type) {
    if constexpr (type() != tensor::Type::kF32) {
      stream.Launch("grouped_gemm_down", &GroupedGemmDownKernel<type()>, grid, kWarps * kWarp,
                    shared, args);
    }
  });
}

}  // namespace tandem::kernels::cuda
