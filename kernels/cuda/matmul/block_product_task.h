// What the kernels of block_product.h get, and their launches, by types.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_TASK_H_
#define TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_TASK_H_

#include "common/tensor/type.h"
#include "kernels/cuda/matmul/bf16_inputs.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/rope_end.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

struct BlockProductTask {
  MatVecParts parts;
  Bf16Inputs x;
  RopeEnd end;
};

// Parts of one type. Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockProductOf32(Stream& stream, tensor::Type type, const BlockProductTask& task);
bool LaunchBlockProductOf256(Stream& stream, tensor::Type type, const BlockProductTask& task);
bool LaunchBlockProductOfGrids(Stream& stream, tensor::Type type, const BlockProductTask& task);
bool LaunchBlockProductOfFewBits(Stream& stream, tensor::Type type, const BlockProductTask& task);
// Parts of several types.
void LaunchMixedProductOf32(Stream& stream, const BlockProductTask& task);
void LaunchMixedProductOf256(Stream& stream, const BlockProductTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_BLOCK_PRODUCT_TASK_H_
