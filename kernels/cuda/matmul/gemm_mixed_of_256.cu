// Floor: the bytes of the weights are read once; 2 * tokens * rows * columns operations on tensor
// cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gemm_blocks.h"

namespace tandem::kernels::cuda {

void LaunchMixedGemmOf256(Stream& stream, const BlockGemmTask& task) {
  LaunchMixedGemm<BlockTypesOf256>(stream, task);
}

}  // namespace tandem::kernels::cuda
