#include "kernels/cuda/matmul/gate_up.h"

#include "kernels/cuda/device/blocks_dispatch.h"

namespace tandem::kernels::cuda {

bool TakesGateUp(const Stream& stream, const MatMulParams& up, const ActivateParams& activate) {
  if (up.num_projections != 2) return false;
  const Projection &gate = up.projections[0], &factor = up.projections[1];
  const tensor::Type type = gate.weight.type;
  const bool same = type == factor.weight.type && gate.weight.rows == factor.weight.rows &&
                    gate.y_stride == gate.weight.rows && factor.y_stride == gate.y_stride;
  const bool activated = activate.gate == gate.y && activate.up == factor.y &&
                         activate.gate_scale == nullptr && activate.cols == gate.weight.rows;
  const uint32_t pieces =
      up.tokens <= kMaxBlockMatVecTokens ? 1 : Blocks(up.tokens, GemmTileSize(up.tokens));
  return same && activated && !IsPlain(type) && up.tokens <= kMaxBlockGemmTokens &&
         FillTallTiles(stream, 2 * gate.weight.rows, pieces);
}

}  // namespace tandem::kernels::cuda
