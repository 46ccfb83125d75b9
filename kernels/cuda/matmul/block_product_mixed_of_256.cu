// Floor: the bytes of the weights are read once; 2 * tokens * rows * columns operations on tensor
// cores, in BF16.
#include "kernels/cuda/matmul/block_product_kernel.h"

namespace tandem::kernels::cuda {

void LaunchMixedProductOf256(Stream& stream, const BlockProductTask& task) {
  LaunchBlockProduct<BlockTypesOf256>(stream, task);
}

}  // namespace tandem::kernels::cuda
