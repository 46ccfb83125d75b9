// Floor: the bytes of the weight are read once.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gemv_blocks.h"

namespace tandem::kernels::cuda {

using TypesOf32 =
    TypeList<tensor::Type::kQ4_0, tensor::Type::kQ4_1, tensor::Type::kQ5_0, tensor::Type::kQ5_1,
             tensor::Type::kQ8_0, tensor::Type::kIQ4_NL, tensor::Type::kMXFP4>;

bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task) {
  return TypesOf32::Dispatch(type,
                             [&](auto t) { LaunchBlockMatVec<decltype(t)::value>(stream, task); });
}

void EncodeBlockMatVec(Stream& stream, tensor::Type type, const MatVecParts& parts,
                       const Int8Group* x, uint32_t tokens, ColumnRange columns) {
  const BlockMatVecTask task = {parts, x, tokens, columns.First(32), columns.Units(32)};
  if (!LaunchBlockMatVecOf32(stream, type, task)) LaunchBlockMatVecOf256(stream, type, task);
}

}  // namespace tandem::kernels::cuda
