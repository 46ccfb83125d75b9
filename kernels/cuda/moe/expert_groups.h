// Choices sorted by expert, on the device: the work items of a grouped product's blocks.
//
// An expert's choices are cut into pieces of up to `size`; those of up to `few` have a list of
// their own. How many pieces there are is known only on the device: grids have the largest possible
// number, and a block whose piece does not exist exits at once.
#ifndef TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_
#define TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/moe/row_pieces.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Pieces have no fewer choices than this, but an expert's last one.
inline constexpr uint32_t kSmallestPiece = 8;

struct ChoiceGroups {
  uint32_t choices = 0;
  uint32_t choices_per_x = 1;  // consecutive choices that share a row of x
  uint32_t size = 0;
  uint32_t few = 0;
  uint32_t experts = 0;
  uint32_t most_small = 0;
  uint32_t most_large = 0;
  RowPiece* small = nullptr;  // (most_small): up to `few` choices
  RowPiece* large = nullptr;  // (most_large): more
  uint32_t* order = nullptr;  // (choices): indices of choices

  ChoiceGroups(const ExpertMatMulParams& params, uint32_t size, uint32_t few);

  // `scratch` of ScratchSize() bytes holds the lists and the order. It grows with the choices, of
  // which pieces are the fewer the larger they are: a plan pass counts the largest step alone.
  size_t ScratchSize() const;
  void SetScratch(std::byte* scratch);

  RowPieces Small() const { return Pieces(small, most_small, few); }
  RowPieces Large() const { return Pieces(large, most_large, size); }

 private:
  size_t MostOfList() const;
  RowPieces Pieces(const RowPiece* list, uint32_t most, uint32_t most_choices) const {
    return {choices, most_choices, most, list, order, choices_per_x};
  }
};

// Fills the lists and the order.
void EncodeChoiceGroups(Stream& stream, const ExpertMatMulParams& params,
                        const ChoiceGroups& groups);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_EXPERT_GROUPS_H_
