#include "worker/model/decoder.h"

#include <utility>

#include "common/base/check.h"

namespace tandem::worker {

using model::Feature;
using model::Role;

Decoder::Decoder(const model::ModelSpec& spec, const model::ShardPlan& plan,
                 std::vector<uint32_t> vocab_starts, const RankWeights& weights,
                 const float* inv_freq, const float* window_inv_freq)
    : spec_(spec),
      plan_(plan),
      embedding_(weights.Matrix(Role::kTokenEmbedding), plan.vocab.begin, spec.embedding_scale),
      output_norm_(MakeNorm(weights, -1, Role::kOutputNorm, Role::kOutputNormBias)),
      head_(weights.Matrix(spec.Has(Feature::kUntiedHead) ? Role::kOutput : Role::kTokenEmbedding),
            std::move(vocab_starts)) {
  if (spec.learned_positions) positions_ = weights.Matrix(Role::kPositionEmbedding);
  if (spec.layer_input_size > 0) layer_inputs_.emplace(spec, weights);
  layers_.resize(spec.num_layers);
  for (uint32_t group = 0; group < spec.kv_groups.size(); ++group) {
    const model::KvGroupSpec& kv = spec.kv_groups[group];
    const bool local = kv.window_tokens != 0 && spec.window_rope.has_value();
    const PlacedRope rope =
        local ? PlacedRope{&*spec.window_rope, window_inv_freq} : PlacedRope{&spec.rope, inv_freq};
    const auto make = [&](uint32_t layer) {
      layers_[layer] = MakeLayer(weights, {.spec = spec,
                                           .plan = plan,
                                           .weights = weights,
                                           .rope = spec.Rotates(layer) ? rope : PlacedRope{},
                                           .layer = static_cast<int>(layer),
                                           .group = group,
                                           .window = kv.window_tokens,
                                           .chunked = kv.chunked,
                                           .heads = spec.HeadsOf(kv),
                                           .has_cache = spec.HasCache(layer),
                                           .values_are_keys = spec.ValuesAreKeys(layer)});
    };
    for (const uint32_t layer : kv.layers) make(layer);
    for (const model::CacheReader& reader : kv.readers) make(reader.layer);
  }
  if (!spec.delta_net.has_value()) return;
  for (const uint32_t layer : spec.delta_net->layers) {
    layers_[layer] = MakeLayer(weights, {.spec = spec,
                                         .plan = plan,
                                         .weights = weights,
                                         .rope = {},
                                         .layer = static_cast<int>(layer)});
  }
}

Norm Decoder::MakeNorm(const RankWeights& weights, int layer, Role weight,
                       std::optional<Role> bias) const {
  return {.weight = weights.Vector(weight, layer),
          .bias = bias.has_value() ? weights.Vector(*bias, layer) : nullptr,
          .epsilon = spec_.norm_epsilon,
          .dim = spec_.hidden_size,
          .layer_norm = spec_.norm == model::NormKind::kLayer};
}

Decoder::Layer Decoder::MakeLayer(const RankWeights& weights, const AttentionParts& parts) const {
  const int index = parts.layer;
  Layer layer;
  layer.attn_norm = MakeNorm(weights, index, Role::kAttnNorm, Role::kAttnNormBias);
  layer.attention = spec_.IsRecurrent(static_cast<uint32_t>(index)) ? MakeGatedDeltaNet(parts)
                    : spec_.mla.has_value()                         ? MakeLatentAttention(parts)
                                            : MakeGroupedQueryAttention(parts);
  layer.ffn_norm = MakeNorm(weights, index, Role::kFfnNorm, Role::kFfnNormBias);
  layer.feed_forward = MakeFeedForward(weights, index);
  if (spec_.post_norms) {
    layer.attn_post_norm = MakeNorm(weights, index, Role::kAttnPostNorm);
    layer.ffn_post_norm = MakeNorm(weights, index, Role::kFfnPostNorm);
  }
  return layer;
}

std::unique_ptr<FeedForwardBlock> Decoder::MakeFeedForward(const RankWeights& weights,
                                                           int layer) const {
  if (!spec_.IsMoe(static_cast<uint32_t>(layer))) {
    return MakeDenseFeedForward(spec_, weights, layer);
  }
  return spec_.moe->beside_dense ? MakeDenseBesideMixture(spec_, plan_, weights, layer)
                                 : MakeMixture(spec_, plan_, weights, layer);
}

Decoder::Hidden Decoder::Encode(LayerContext& context, const Batch& batch,
                                const std::vector<kernels::KvPages>& pages,
                                const std::vector<LayerStates>& states) const {
  TANDEM_CHECK(pages.size() == layers_.size() && states.size() == layers_.size());
  // With one token per sequence, contexts are those of the tokens.
  if (batch.max_query_len == 1 && batch.tokens == batch.num_seqs) {
    context.lengths = batch.context_lens;
  }
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
    EncodeLayer(context, batch, layers_[index], {pages[index], states[index]}, add, normed, hidden);
    add = EncodeLayerEnd(context, index, batch.tokens, layer_inputs, hidden);
  }
  hidden.delta = add;
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

void Decoder::EncodeLayer(LayerContext& context, const Batch& batch, const Layer& layer,
                          const LayerCache& cache, const float* add, float* normed,
                          const Hidden& hidden) const {
  const auto post = [&](const Norm& norm) {
    norm.Encode(context, batch.tokens, hidden.delta, nullptr, hidden.delta);
  };
  const auto rows = [&](const Norm& norm, const float* delta) {
    return NormedRows{norm.Params(batch.tokens, hidden.residual, delta, normed), normed,
                      hidden.residual};
  };
  layer.attention->Encode(context, batch, cache, rows(layer.attn_norm, add), hidden.delta);
  post(layer.attn_post_norm);
  layer.feed_forward->Encode(context, rows(layer.ffn_norm, hidden.delta), batch.tokens,
                             hidden.delta);
  post(layer.ffn_post_norm);
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

float* Decoder::EncodeHead(LayerContext& context, const Hidden& hidden, const int32_t* rows,
                           uint32_t count) const {
  const size_t floats = static_cast<size_t>(count) * spec_.hidden_size;
  auto gather = [&](const float* src) {
    float* out = context.arena.TakeActivations(floats);
    context.backend.Encode(kernels::GatherRowsParams{
        .src = src, .rows = rows, .count = count, .dim = spec_.hidden_size, .out = out});
    return out;
  };
  float* residual = gather(hidden.residual);
  const float* delta = hidden.delta == nullptr ? nullptr : gather(hidden.delta);
  float* normed = context.arena.TakeActivations(floats);
  const NormedRows x = {output_norm_.Params(count, residual, delta, normed), normed, residual};
  float* logits = head_.Encode(context, x, count, plan_.rank);
  if (logits != nullptr && spec_.logit_softcap > 0.0f) {
    context.backend.Encode(
        kernels::SoftCapParams{.x = logits,
                               .count = static_cast<size_t>(count) * spec_.vocab_size,
                               .cap = spec_.logit_softcap});
  }
  return logits;
}

}  // namespace tandem::worker
