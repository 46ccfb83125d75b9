// A norm with its weights: RMSNorm, or LayerNorm with a bias.
#ifndef TANDEM_WORKER_LAYERS_NORM_H_
#define TANDEM_WORKER_LAYERS_NORM_H_

#include <cstdint>

#include "worker/layers/context.h"

namespace tandem::worker {

// Borrows its weights.
struct Norm {
  const float* weight = nullptr;  // (dim); null: there is no such norm
  const float* bias = nullptr;    // (dim), LayerNorm
  float epsilon = 0.0f;
  uint32_t dim = 0;
  bool layer_norm = false;

  explicit operator bool() const { return weight != nullptr; }

  // residual += add (if any), out = norm(residual). Both (rows, dim).
  void Encode(LayerContext& context, uint32_t rows, float* residual, const float* add,
              float* out) const;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LAYERS_NORM_H_
