#include "worker/model/layer_inputs.h"

#include <cmath>
#include <numbers>

namespace tandem::worker {

using model::Role;

LayerInputs::LayerInputs(const model::ModelSpec& spec, const RankWeights& weights)
    : hidden_(spec.hidden_size),
      size_(spec.layer_input_size),
      width_(spec.num_layers * spec.layer_input_size),
      table_(weights.Matrix(Role::kLayerEmbedding)),
      projection_({weights.Matrix(Role::kLayerInputProjection), nullptr}),
      // The projection is to be divided by sqrt(hidden) before its norm: the same as a larger
      // epsilon.
      projection_norm_({.weight = weights.Vector(Role::kLayerInputNorm),
                        .epsilon = spec.norm_epsilon * static_cast<float>(spec.hidden_size),
                        .dim = spec.layer_input_size}) {
  for (int layer = 0; layer < static_cast<int>(spec.num_layers); ++layer) {
    layers_.push_back(
        {.gate = ColumnParallelLinear({weights.Matrix(Role::kLayerInputGate, layer), nullptr}),
         .output = ColumnParallelLinear({weights.Matrix(Role::kLayerInputOut, layer), nullptr}),
         .post_norm = {.weight = weights.Vector(Role::kLayerInputPostNorm, layer),
                       .epsilon = spec.norm_epsilon,
                       .dim = spec.hidden_size}});
  }
}

const float* LayerInputs::Encode(LayerContext& context, const Batch& batch, float* x) const {
  const size_t values = static_cast<size_t>(batch.tokens) * width_;
  float* inputs = context.arena.TakeActivations(values);
  const size_t mark = context.arena.used();
  float* projected = context.arena.TakeActivations(values);
  context.backend.Encode(kernels::EmbedParams{.ids = batch.ids,
                                              .tokens = batch.tokens,
                                              .table = table_,
                                              .vocab_begin = 0,
                                              .scale = std::sqrt(static_cast<float>(size_)),
                                              .out = inputs});
  projection_.Encode(context, x, batch.tokens, projected);
  projection_norm_.Encode(context, batch.tokens * (width_ / size_), projected, nullptr, projected);
  context.backend.Encode(
      kernels::AddRowsParams{.y = inputs,
                             .x = projected,
                             .gate = nullptr,
                             .rows = batch.tokens,
                             .dim = width_,
                             .scale = static_cast<float>(1.0 / std::numbers::sqrt2)});
  context.arena.Rewind(mark);
  return inputs;
}

void LayerInputs::EncodeLayer(LayerContext& context, uint32_t layer, uint32_t tokens,
                              const float* inputs, const float* residual, float* out) const {
  const size_t mark = context.arena.used();
  float* gate = context.arena.TakeActivations(static_cast<size_t>(tokens) * size_);
  float* input = context.arena.TakeActivations(static_cast<size_t>(tokens) * size_);
  layers_[layer].gate.Encode(context, residual, tokens, gate);
  context.backend.Encode(kernels::CopyRowsParams{.x = inputs + size_t{layer} * size_,
                                                 .x_stride = width_,
                                                 .rows = tokens,
                                                 .dim = size_,
                                                 .y = input,
                                                 .y_stride = size_});
  context.backend.Encode(kernels::ActivateParams{.function = kernels::Activation::kGeluTanh,
                                                 .gate = gate,
                                                 .up = input,
                                                 .rows = tokens,
                                                 .cols = size_,
                                                 .out = gate});
  layers_[layer].output.Encode(context, gate, tokens, out);
  layers_[layer].post_norm.Encode(context, tokens, out, nullptr, out);
  context.arena.Rewind(mark);
}

}  // namespace tandem::worker
