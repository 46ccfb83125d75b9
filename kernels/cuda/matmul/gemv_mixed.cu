// Floor: the bytes of the weights are read once.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gemv_blocks.h"

namespace tandem::kernels::cuda {

void EncodeMixedMatVec(Stream& stream, const MatVecParts& parts, const Int8Group* x,
                       uint32_t tokens, ColumnRange columns) {
  const BlockMatVecTask task = {parts, {x, tokens, columns.First(32), columns.Units(32)}};
  if (BlockTypesOf256::Has(parts.part[0].type)) {
    LaunchMixedMatVec<BlockTypesOf256>(stream, task);
  } else {
    LaunchMixedMatVec<BlockTypesOf32>(stream, task);
  }
}

}  // namespace tandem::kernels::cuda
