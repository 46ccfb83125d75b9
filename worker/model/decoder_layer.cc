#include "worker/model/decoder_layer.h"

#include <algorithm>

namespace tandem::worker {
namespace {

using model::Role;

// The number of the layer's KV group; none for recurrent layers.
std::optional<uint32_t> GroupOf(const model::ModelSpec& spec, uint32_t layer) {
  for (uint32_t number = 0; number < spec.kv_groups.size(); ++number) {
    const model::KvGroupSpec& group = spec.kv_groups[number];
    const bool has =
        std::find(group.layers.begin(), group.layers.end(), layer) != group.layers.end();
    const bool reads =
        std::any_of(group.readers.begin(), group.readers.end(),
                    [layer](const model::CacheReader& reader) { return reader.layer == layer; });
    if (has || reads) return number;
  }
  return std::nullopt;
}

AttentionParts AttentionPartsOf(const ModelParts& parts, uint32_t layer) {
  const model::ModelSpec& spec = parts.spec;
  AttentionParts made{.spec = spec,
                      .plan = parts.plan,
                      .weights = parts.weights,
                      .adapters = parts.adapters,
                      .rope = {},
                      .layer = static_cast<int>(layer)};
  const std::optional<uint32_t> group = GroupOf(spec, layer);
  if (!group.has_value()) return made;
  const model::KvGroupSpec& kv = spec.kv_groups[*group];
  const bool local = kv.window_tokens != 0 && spec.window_rope.has_value();
  if (spec.Rotates(layer)) {
    made.rope = local ? PlacedRope{&*spec.window_rope, parts.window_inv_freq}
                      : PlacedRope{&spec.rope, parts.inv_freq};
  }
  made.group = *group;
  made.window = kv.window_tokens;
  made.chunked = kv.chunked;
  made.heads = spec.HeadsOf(kv);
  made.has_cache = spec.HasCache(layer);
  made.values_are_keys = spec.ValuesAreKeys(layer);
  return made;
}

std::unique_ptr<AttentionBlock> MakeAttention(const ModelParts& parts, uint32_t layer) {
  const AttentionParts made = AttentionPartsOf(parts, layer);
  if (parts.spec.IsRecurrent(layer)) return MakeGatedDeltaNet(made);
  return parts.spec.mla.has_value() ? MakeLatentAttention(made) : MakeGroupedQueryAttention(made);
}

std::unique_ptr<FeedForwardBlock> MakeFeedForward(const ModelParts& parts, uint32_t layer) {
  const model::ModelSpec& spec = parts.spec;
  const int index = static_cast<int>(layer);
  if (!spec.IsMoe(layer)) return MakeDenseFeedForward(spec, parts.weights, parts.adapters, index);
  return spec.moe->beside_dense ? MakeDenseBesideMixture(spec, parts.plan, parts.weights, index)
                                : MakeMixture(spec, parts.plan, parts.weights, index);
}

}  // namespace

Norm MakeNorm(const ModelParts& parts, int layer, Role weight, std::optional<Role> bias) {
  return {.weight = parts.weights.Vector(weight, layer),
          .bias = bias.has_value() ? parts.weights.Vector(*bias, layer) : nullptr,
          .epsilon = parts.spec.norm_epsilon,
          .dim = parts.spec.hidden_size,
          .layer_norm = parts.spec.norm == model::NormKind::kLayer};
}

DecoderLayer::DecoderLayer(const ModelParts& parts, uint32_t layer)
    : attn_norm_(MakeNorm(parts, static_cast<int>(layer), Role::kAttnNorm, Role::kAttnNormBias)),
      attention_(MakeAttention(parts, layer)),
      ffn_norm_(MakeNorm(parts, static_cast<int>(layer), Role::kFfnNorm, Role::kFfnNormBias)),
      feed_forward_(MakeFeedForward(parts, layer)) {
  if (!parts.spec.post_norms) return;
  attn_post_norm_ = MakeNorm(parts, static_cast<int>(layer), Role::kAttnPostNorm);
  ffn_post_norm_ = MakeNorm(parts, static_cast<int>(layer), Role::kFfnPostNorm);
}

void DecoderLayer::Encode(LayerContext& context, const Batch& batch, const LayerCache& cache,
                          const float* add, float* normed, const Hidden& hidden) const {
  const auto post = [&](const Norm& norm) {
    norm.Encode(context, batch.tokens, hidden.delta, nullptr, hidden.delta);
  };
  const auto rows = [&](const Norm& norm, const float* delta) {
    return NormedRows{norm.Params(batch.tokens, hidden.residual, delta, normed), normed,
                      hidden.residual};
  };
  attention_->Encode(context, batch, cache, rows(attn_norm_, add), hidden.delta);
  post(attn_post_norm_);
  feed_forward_->Encode(context, rows(ffn_norm_, hidden.delta), batch.tokens, hidden.delta);
  post(ffn_post_norm_);
}

}  // namespace tandem::worker
