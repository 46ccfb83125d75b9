// Per-layer embeddings (Gemma 3n, Gemma 4): every layer adds to the residual a gated projection of
// its own embedding of the token. Replicated on all ranks. T = tokens, P = values per layer.
#ifndef TANDEM_WORKER_MODEL_LAYER_INPUTS_H_
#define TANDEM_WORKER_MODEL_LAYER_INPUTS_H_

#include <cstdint>
#include <vector>

#include "common/model/spec.h"
#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/linear.h"
#include "worker/layers/norm.h"
#include "worker/model/batch.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

class LayerInputs {
 public:
  // Borrows the weights. REQUIRES: spec.layer_input_size > 0.
  LayerInputs(const model::ModelSpec& spec, const RankWeights& weights);

  // The inputs of all layers, (T, layers * P), from the tokens and their scaled embeddings
  // x (T, hidden). Taken from the context's arena.
  const float* Encode(LayerContext& context, const Batch& batch, float* x) const;

  // What `layer` adds to the residual (T, hidden): out (T, hidden). `inputs` is Encode's result.
  void EncodeLayer(LayerContext& context, uint32_t layer, uint32_t tokens, const float* inputs,
                   const float* residual, float* out) const;

 private:
  struct Layer {
    ColumnParallelLinear gate;
    ColumnParallelLinear output;
    Norm post_norm;
  };

  uint32_t hidden_;
  uint32_t size_;   // P
  uint32_t width_;  // layers * P
  kernels::Weight table_;
  ColumnParallelLinear projection_;
  Norm projection_norm_;
  std::vector<Layer> layers_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_LAYER_INPUTS_H_
