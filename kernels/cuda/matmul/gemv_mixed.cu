// Floor: the bytes of the weights are read once.
#include "kernels/cuda/matmul/gemv_blocks.h"

namespace tandem::kernels::cuda {

void LaunchMixedMatVec(Stream& stream, const BlockMatVecTask& task) {
  BlockTypesOf256::Has(task.parts.part[0].type) ? LaunchBlockMatVec<BlockTypesOf256>(stream, task)
                                                : LaunchBlockMatVec<BlockTypesOf32>(stream, task);
}

}  // namespace tandem::kernels::cuda
