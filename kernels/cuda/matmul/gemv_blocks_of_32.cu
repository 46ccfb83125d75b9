// Floor: the bytes of the weight are read once.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gemv_blocks.h"

namespace tandem::kernels::cuda {

bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task) {
  return BlockTypesOf32::Dispatch(
      type, [&](auto t) { LaunchBlockMatVec<decltype(t)::value>(stream, task); });
}

void EncodeBlockMatVec(Stream& stream, tensor::Type type, const MatVecParts& parts,
                       const Int8Group* x, uint32_t tokens, ColumnRange columns) {
  const BlockMatVecTask task = {parts, {x, tokens, columns.First(32), columns.Units(32)}};
  if (!LaunchBlockMatVecOf32(stream, type, task)) LaunchBlockMatVecOf256(stream, type, task);
}

}  // namespace tandem::kernels::cuda
