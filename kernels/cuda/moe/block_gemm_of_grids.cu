// Floor: the bytes of the weight are read once; 2 * tokens * rows * columns operations on tensor
// cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/moe/block_gemm_kernel.h"

namespace tandem::kernels::cuda {

bool LaunchBlockGemmOfGrids(Stream& stream, tensor::Type type, const BlockGemmTask& task) {
  return BlockTypesOfGrids::Dispatch(
      type, [&](auto t) { LaunchBlockGemm<decltype(t)::value>(stream, task); });
}

}  // namespace tandem::kernels::cuda
