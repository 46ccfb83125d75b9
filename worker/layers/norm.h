// A norm with its weights: RMSNorm, or LayerNorm with a bias.
#ifndef TANDEM_WORKER_LAYERS_NORM_H_
#define TANDEM_WORKER_LAYERS_NORM_H_

#include <cstdint>

#include "worker/layers/context.h"

namespace tandem::worker {

void EncodeNorm(LayerContext& context, const kernels::NormParams& norm);

// Borrows its weights.
struct Norm {
  const float* weight = nullptr;  // (dim); null: there is no such norm
  const float* bias = nullptr;    // (dim), LayerNorm
  float epsilon = 0.0f;
  uint32_t dim = 0;
  bool layer_norm = false;

  // residual += add (if any), out = norm(residual). Both (rows, dim). None if there is no such
  // norm.
  kernels::NormParams Params(uint32_t rows, float* residual, const float* add, float* out) const;
  void Encode(LayerContext& context, uint32_t rows, float* residual, const float* add,
              float* out) const {
    EncodeNorm(context, Params(rows, residual, add, out));
  }
};

// The rows that a block reads. Their norm, if any, is not encoded yet: it can be part of the
// composite op that the block begins with.
struct NormedRows {
  kernels::NormParams norm;  // writes x
  const float* x = nullptr;
  // The rows before the norm; complete once it is encoded.
  float* residual = nullptr;

  // For a block that reads x more than once.
  const float* Encode(LayerContext& context) const {
    EncodeNorm(context, norm);
    return x;
  }
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LAYERS_NORM_H_
