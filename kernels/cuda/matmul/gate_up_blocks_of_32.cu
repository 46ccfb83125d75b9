// Floor: the bytes of both weights are read once; 1.5 bytes per activated value written. In tiles
// 2 * tokens * rows * columns operations on tensor cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gate_up_blocks.h"

namespace tandem::kernels::cuda {

bool LaunchGateUpOf32(Stream& stream, tensor::Type type, const GateUpTask& task) {
  return BlockTypesOf32::Dispatch(type,
                                  [&](auto t) { LaunchGateUp<decltype(t)::value>(stream, task); });
}

void EncodeGateUp(Stream& stream, const MatMulParams& up, const ActivateParams& activate,
                  const Int8Group* x, const Int8Rows& to) {
  const Weight& weight = up.projections[0].weight;
  const ColumnRange columns = {weight.col_begin, weight.col_count};
  const GateUpTask task = {PartOf(up.projections[0]),
                           PartOf(up.projections[1]),
                           activate.function,
                           {x, up.tokens, columns.First(32), columns.Units(32)},
                           to};
  if (!LaunchGateUpOf32(stream, weight.type, task)) LaunchGateUpOf256(stream, weight.type, task);
}

}  // namespace tandem::kernels::cuda
