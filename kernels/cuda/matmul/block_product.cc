#include "kernels/cuda/matmul/block_product.h"

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/block_product_task.h"

namespace tandem::kernels::cuda {

void EncodeBlockProduct(Stream& stream, const MatVecParts& parts, const Bf16Inputs& x,
                        const RopeEnd& end) {
  const BlockProductTask task = {parts, x, end};
  const tensor::Type type = parts.part[0].type;
  if (!parts.OfOneType()) {
    BlockTypesOf256::Has(type) ? LaunchMixedProductOf256(stream, task)
                               : LaunchMixedProductOf32(stream, task);
  } else if (!LaunchBlockProductOf32(stream, type, task) &&
             !LaunchBlockProductOf256(stream, type, task) &&
             !LaunchBlockProductOfGrids(stream, type, task)) {
    LaunchBlockProductOfFewBits(stream, type, task);
  }
}

}  // namespace tandem::kernels::cuda
