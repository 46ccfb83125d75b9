#include "worker/model/decoder.h"

#include <utility>

#include "common/base/check.h"

namespace tandem::worker {

using model::Role;

Decoder::Decoder(const ModelParts& parts, std::vector<uint32_t> vocab_starts)
    : spec_(parts.spec),
      adapts_(parts.adapters.count() > 0),
      embedding_(parts.weights.Matrix(Role::kTokenEmbedding), parts.plan.vocab.begin,
                 spec_.embedding_scale),
      output_(parts, MakeNorm(parts, -1, Role::kOutputNorm, Role::kOutputNormBias),
              OutputMatrix(parts), std::move(vocab_starts)) {
  if (spec_.learned_positions) positions_ = parts.weights.Matrix(Role::kPositionEmbedding);
  if (spec_.layer_input_size > 0) layer_inputs_.emplace(spec_, parts.weights);
  layers_.reserve(spec_.num_layers);
  for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) layers_.emplace_back(parts, layer);
}

Hidden Decoder::Encode(LayerContext& context, const Batch& batch,
                       const std::vector<kernels::KvPages>& pages,
                       const std::vector<LayerStates>& states) const {
  TANDEM_CHECK(pages.size() == spec_.NumLoadedLayers() && states.size() == layers_.size());
  context.lengths = batch.RowLengths();
  if (adapts_) context.adapter_runs = batch.adapter_runs;
  const auto rows = [&] {
    return context.arena.TakeActivations(static_cast<size_t>(batch.tokens) * spec_.hidden_size);
  };
  Hidden hidden{.residual = rows(), .delta = rows()};
  float* normed = rows();
  EncodeEmbedding(context, batch, hidden);
  const float* layer_inputs =
      layer_inputs_.has_value() ? layer_inputs_->Encode(context, batch, hidden.residual) : nullptr;
  float* add = nullptr;  // no residual update before the first norm
  for (uint32_t index = 0; index < layers_.size(); ++index) {
    layers_[index].Encode(context, batch, {pages[index], states[index]}, add, normed, hidden);
    add = EncodeLayerEnd(context, index, batch.tokens, layer_inputs, hidden);
  }
  hidden.delta = add;
  hidden.spare = normed;
  return hidden;
}

void Decoder::EncodeEmbedding(LayerContext& context, const Batch& batch,
                              const Hidden& hidden) const {
  embedding_.Encode(context, batch.ids, batch.tokens, hidden.residual);
  if (!spec_.learned_positions) return;
  context.backend.Encode(kernels::EmbedParams{.ids = batch.positions,
                                              .tokens = batch.tokens,
                                              .table = positions_,
                                              .vocab_begin = 0,
                                              .scale = 1.0f,
                                              .out = hidden.delta});
  context.backend.Encode(kernels::AddRowsParams{.y = hidden.residual,
                                                .x = hidden.delta,
                                                .gate = nullptr,
                                                .rows = batch.tokens,
                                                .dim = spec_.hidden_size});
}

float* Decoder::EncodeLayerEnd(LayerContext& context, uint32_t layer, uint32_t tokens,
                               const float* layer_inputs, const Hidden& hidden) const {
  const auto add = [&](float scale) {
    context.backend.Encode(kernels::AddRowsParams{.y = hidden.residual,
                                                  .x = hidden.delta,
                                                  .gate = nullptr,
                                                  .rows = tokens,
                                                  .dim = spec_.hidden_size,
                                                  .scale = scale});
  };
  if (layer_inputs_.has_value()) {
    add(1.0f);
    layer_inputs_->EncodeLayer(context, layer, tokens, layer_inputs, hidden.residual, hidden.delta);
  }
  if (spec_.layer_output_scales.empty()) return hidden.delta;
  add(spec_.layer_output_scales[layer]);
  return nullptr;
}

}  // namespace tandem::worker
