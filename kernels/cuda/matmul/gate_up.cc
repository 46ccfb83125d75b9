#include "kernels/cuda/matmul/gate_up.h"

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/block_product.h"
#include "kernels/cuda/matmul/gate_up_tasks.h"

namespace tandem::kernels::cuda {
namespace {

GateAndUp WeightsOf(const MatMulParams& up, const ActivateParams& activate) {
  return {PartOf(up.projections[0]), PartOf(up.projections[1]), activate.function};
}

}  // namespace

bool TakesGateUp(const MatMulParams& up, const ActivateParams& activate) {
  if (up.num_projections != 2) return false;
  const Projection &gate = up.projections[0], &factor = up.projections[1];
  const tensor::Type type = gate.weight.type;
  const bool same = type == factor.weight.type && gate.weight.rows == factor.weight.rows &&
                    gate.y_stride == gate.weight.rows && factor.y_stride == gate.y_stride;
  const bool activated = activate.gate == gate.y && activate.up == factor.y &&
                         activate.gate_scale == nullptr && activate.cols == gate.weight.rows;
  return same && activated && !IsPlain(type) && up.tokens <= kMaxBlockProductTokens;
}

void EncodeGateUpMatVec(Stream& stream, const MatMulParams& up, const ActivateParams& activate,
                        const Int8Group* x, Int8Group* to) {
  const Weight& weight = up.projections[0].weight;
  const ColumnRange columns = {weight.col_begin, weight.col_count};
  const GateUpMatVecTask task = {
      WeightsOf(up, activate), {x, columns.First(32), columns.Units(32)}, to};
  if (!LaunchGateUpMatVecOf32(stream, weight.type, task) &&
      !LaunchGateUpMatVecOf256(stream, weight.type, task) &&
      !LaunchGateUpMatVecOfGrids(stream, weight.type, task)) {
    LaunchGateUpMatVecOfFewBits(stream, weight.type, task);
  }
}

void EncodeGateUp(Stream& stream, const MatMulParams& up, const ActivateParams& activate,
                  const Bf16Inputs& x, const Bf16Rows& to) {
  const GateUpTask task = {WeightsOf(up, activate), x, to};
  const tensor::Type type = task.weights.gate.type;
  if (!LaunchGateUpOf32(stream, type, task) && !LaunchGateUpOf256(stream, type, task) &&
      !LaunchGateUpOfGrids(stream, type, task)) {
    LaunchGateUpOfFewBits(stream, type, task);
  }
}

}  // namespace tandem::kernels::cuda
