// Choices sorted by expert, on the device: what each block of a grouped product works on.
//
// Tokens are cut into runs of `run_tokens`; every run is sorted for itself. Its tiles are up to
// `tile` choices of one expert. How many tiles there are only the device knows: grids are as large
// as their number can be, and a block whose tile has no choices ends at once.
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
  uint32_t count;  // 0: there is no such tile, nor any after it in the run
};

struct ChoiceGroups {
  uint32_t run_tokens = 0;
  uint32_t runs = 0;
  uint32_t tile = 0;
  uint32_t most_tiles = 0;      // of a run
  ExpertTile* tiles = nullptr;  // (runs, most_tiles)
  uint32_t* order = nullptr;    // (all choices): indices of choices; runs where they are in ids

  ChoiceGroups(const ExpertMatMulParams& params, uint32_t run_tokens, uint32_t tile);
  size_t TileBytes() const;
  size_t OrderBytes(const ExpertMatMulParams& params) const;
};

// Fills tiles and order.
void EncodeChoiceGroups(Stream& stream, const ExpertMatMulParams& params,
                        const ChoiceGroups& groups);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_
