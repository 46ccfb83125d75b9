// Floor: the bytes of the weight are read once.
#include "kernels/cuda/matmul/gemv_blocks.h"

namespace tandem::kernels::cuda {

bool LaunchBlockMatVecOfGrids(Stream& stream, tensor::Type type, const BlockMatVecTask& task) {
  return BlockTypesOfGrids::Dispatch(
      type, [&](auto t) { LaunchBlockMatVec<TypeList<decltype(t)::value>>(stream, task); });
}

}  // namespace tandem::kernels::cuda
