// Floor: the bytes of the weight are read once; 2 * tokens * rows * columns operations on tensor
// cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gemm_blocks.h"

namespace tandem::kernels::cuda {

using TypesOf256 = TypeList<tensor::Type::kQ2_K, tensor::Type::kQ3_K, tensor::Type::kQ4_K,
                            tensor::Type::kQ5_K, tensor::Type::kQ6_K, tensor::Type::kIQ4_XS>;

bool LaunchBlockGemmOf256(Stream& stream, tensor::Type type, const BlockGemmTask& task) {
  return TypesOf256::Dispatch(type,
                              [&](auto t) { LaunchBlockGemm<decltype(t)::value>(stream, task); });
}

}  // namespace tandem::kernels::cuda
