#include "worker/layers/norm.h"

namespace tandem::worker {

void EncodeNorm(LayerContext& context, const kernels::NormParams& norm) {
  kernels::VisitPart(norm, [&](const auto& params) { context.backend.Encode(params); });
}

kernels::NormParams Norm::Params(uint32_t rows, float* residual, const float* add,
                                 float* out) const {
  if (weight == nullptr) return {};
  if (layer_norm) {
    return kernels::LayerNormParams{.residual = residual,
                                    .add = add,
                                    .weight = weight,
                                    .bias = bias,
                                    .epsilon = epsilon,
                                    .rows = rows,
                                    .dim = dim,
                                    .out = out};
  }
  return kernels::RmsNormParams{.residual = residual,
                                .add = add,
                                .weight = weight,
                                .epsilon = epsilon,
                                .rows = rows,
                                .dim = dim,
                                .out = out};
}

}  // namespace tandem::worker
