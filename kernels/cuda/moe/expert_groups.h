// Choices sorted by expert, on the device: the work items of a grouped product's blocks.
//
// Tokens are cut into runs of `run_tokens`; every run is sorted separately. A tile is up to `tile`
// choices of one expert. The number of tiles is known only on the device: grids have the largest
// possible number, and a block whose tile is empty exits at once.
#ifndef TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_
#define TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Choices order[first, first + count) are of `expert`, one of the rank's.
struct ExpertTile {
  uint32_t expert;
  uint32_t first;
  uint32_t count;  // 0: neither this nor any later tile of the run exists
};

struct ChoiceGroups {
  uint32_t run_tokens = 0;
  uint32_t runs = 0;
  uint32_t tile = 0;
  uint32_t most_tiles = 0;      // of a run
  ExpertTile* tiles = nullptr;  // (runs, most_tiles)
  uint32_t* order = nullptr;    // (all choices): indices of choices, in the same runs as ids

  ChoiceGroups(const ExpertMatMulParams& params, uint32_t run_tokens, uint32_t tile);
  size_t TileBytes() const;
  size_t OrderBytes(const ExpertMatMulParams& params) const;
};

// Fills tiles and order.
void EncodeChoiceGroups(Stream& stream, const ExpertMatMulParams& params,
                        const ChoiceGroups& groups);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_
