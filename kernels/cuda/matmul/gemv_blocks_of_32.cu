// Floor: the bytes of the weight are read once.
#include "kernels/cuda/matmul/gemv_blocks.h"

namespace tandem::kernels::cuda {

bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task) {
  return BlockTypesOf32::Dispatch(
      type, [&](auto t) { LaunchBlockMatVec<TypeList<decltype(t)::value>>(stream, task); });
}

void EncodeBlockMatVec(Stream& stream, const MatVecParts& parts, const Int8Group* x,
                       ColumnRange columns, const RopeEnd& end) {
  const BlockMatVecTask task = {parts, {x, columns.First(32), columns.Units(32)}, end};
  const tensor::Type type = parts.part[0].type;
  if (!parts.OfOneType()) {
    LaunchMixedMatVec(stream, task);
  } else if (!LaunchBlockMatVecOf32(stream, type, task) &&
             !LaunchBlockMatVecOf256(stream, type, task) &&
             !LaunchBlockMatVecOfGrids(stream, type, task)) {
    LaunchBlockMatVecOfFewBits(stream, type, task);
  }
}

}  // namespace tandem::kernels::cuda
