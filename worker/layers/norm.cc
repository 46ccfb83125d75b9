#include "worker/layers/norm.h"

namespace tandem::worker {

void Norm::Encode(LayerContext& context, uint32_t rows, float* residual, const float* add,
                  float* out) const {
  if (layer_norm) {
    context.backend.Encode(kernels::LayerNormParams{.residual = residual,
                                                    .add = add,
                                                    .weight = weight,
                                                    .bias = bias,
                                                    .epsilon = epsilon,
                                                    .rows = rows,
                                                    .dim = dim,
                                                    .out = out});
    return;
  }
  context.backend.Encode(kernels::RmsNormParams{.residual = residual,
                                                .add = add,
                                                .weight = weight,
                                                .epsilon = epsilon,
                                                .rows = rows,
                                                .dim = dim,
                                                .out = out});
}

}  // namespace tandem::worker
