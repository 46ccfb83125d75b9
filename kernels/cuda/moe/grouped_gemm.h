// Grouped GEMM on tensor cores: arguments, and the product for one tile of choices.
#ifndef TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_
#define TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/matmul/weight_tiles.h"
#include "kernels/cuda/moe/expert_choices.h"
#include "kernels/cuda/moe/expert_groups.h"
#include "kernels/cuda/moe/expert_matmul.h"

namespace tandem::kernels::cuda {

struct GroupedGemmArgs {
  ExpertMatMulParams p;
  ColumnWindow window;
  ChoiceGroups groups;
  const uint16_t* x;  // rows of inputs as BF16, window.padded apart
};

// Sorts choices in runs of `run_tokens` into tiles of `tile`, and rounds inputs.
GroupedGemmArgs PrepareGroupedGemm(Stream& stream, const ExpertMatMulParams& params,
                                   uint32_t run_tokens, uint32_t tile);

// --- on the device ---

// Adds up rows [row, row + kRows of the tile) of an expert for all choices of one tile. All lanes
// of the warp.
template <tensor::Type kType, uint32_t kRowTiles, uint32_t kInputTiles>
__device__ __forceinline__ void MultiplyExpertTile(const GroupedGemmArgs& a,
                                                   const ExpertProjection& projection,
                                                   const ExpertTile& work, uint32_t row,
                                                   ProductTile<kRowTiles, kInputTiles>& product) {
  MultiplyTile<kType>([&](uint32_t i) { return ExpertRow(projection, work.expert, row + i); },
                      [&](uint32_t i) {
                        const uint32_t choice = a.groups.order[work.first + min(i, work.count - 1)];
                        return a.x +
                               static_cast<size_t>(InputOfChoice(a.p, choice)) * a.window.padded;
                      },
                      projection.weight.cols, a.window, work.count, product);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GROUPED_GEMM_H_
