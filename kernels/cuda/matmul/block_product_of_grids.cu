// Floor: the bytes of the weight are read once; 2 * tokens * rows * columns operations on tensor
// cores, in BF16.
#include "kernels/cuda/matmul/block_product_kernel.h"

namespace tandem::kernels::cuda {

bool LaunchBlockProductOfGrids(Stream& stream, tensor::Type type, const BlockProductTask& task) {
  return BlockTypesOfGrids::Dispatch(
      type, [&](auto t) { LaunchBlockProduct<TypeList<decltype(t)::value>>(stream, task); });
}

}  // namespace tandem::kernels::cuda
