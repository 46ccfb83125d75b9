#include "worker/model/decoder.h"

#include <utility>

#include "common/base/check.h"

namespace tandem::worker {

using model::Role;

struct Decoder::Activations {
  float* residual;  // (T, hidden)
  float* normed;    // (T, hidden)
  float* delta;     // (T, hidden): what the last block adds to the residual
  float* q;         // (T, heads * head_dim); attention's output has the same room
  float* k;         // (T, kv_heads * head_dim)
  float* v;         // (T, kv_heads * value_dim)
  float* attended;  // (T, heads * value_dim)
  float* gate;      // (T, ffn)
  float* up;        // (T, ffn)
};

Decoder::Decoder(const model::ModelSpec& spec, const model::ShardPlan& plan,
                 std::vector<uint32_t> vocab_starts, const RankWeights& weights,
                 const float* inv_freq)
    : spec_(spec),
      plan_(plan),
      embedding_(weights.Matrix(Role::kTokenEmbedding), plan.vocab.begin),
      output_norm_(weights.Vector(Role::kOutputNorm)),
      head_(weights.Matrix(spec.tied_embeddings ? Role::kTokenEmbedding : Role::kOutput),
            std::move(vocab_starts)),
      inv_freq_(inv_freq) {
  for (uint32_t index = 0; index < spec.num_layers; ++index) {
    layers_.push_back(MakeLayer(weights, static_cast<int>(index)));
  }
  for (uint32_t group = 0; group < spec.kv_groups.size(); ++group) {
    for (uint32_t layer : spec.kv_groups[group].layers) {
      layers_[layer].group = group;
      layers_[layer].window = spec.kv_groups[group].window_tokens;
    }
  }
}

Decoder::Layer Decoder::MakeLayer(const RankWeights& weights, int index) const {
  auto linear = [&](Role matrix, Role bias) {
    return Linear{weights.Matrix(matrix, index), weights.Vector(bias, index)};
  };
  auto unbiased = [&](Role matrix) { return Linear{weights.Matrix(matrix, index), nullptr}; };
  Layer layer;
  layer.attn_norm = weights.Vector(Role::kAttnNorm, index);
  layer.qkv = QkvParallelLinear(linear(Role::kAttnQ, Role::kAttnQBias),
                                linear(Role::kAttnK, Role::kAttnKBias),
                                linear(Role::kAttnV, Role::kAttnVBias));
  layer.q_norm = weights.Vector(Role::kAttnQNorm, index);
  layer.k_norm = weights.Vector(Role::kAttnKNorm, index);
  layer.attn_output = RowParallelLinear(linear(Role::kAttnOutput, Role::kAttnOutputBias));
  layer.ffn_norm = weights.Vector(Role::kFfnNorm, index);
  layer.gate_up = MergedColumnParallelLinear(unbiased(Role::kFfnGate), unbiased(Role::kFfnUp));
  layer.down = RowParallelLinear(unbiased(Role::kFfnDown));
  return layer;
}

Decoder::Activations Decoder::TakeActivations(Arena& arena, uint32_t tokens) const {
  auto rows = [&](uint32_t width) {
    return arena.Take<float>(static_cast<size_t>(tokens) * width);
  };
  return {.residual = rows(spec_.hidden_size),
          .normed = rows(spec_.hidden_size),
          .delta = rows(spec_.hidden_size),
          .q = rows(plan_.heads.size() * spec_.head_dim),
          .k = rows(plan_.kv_heads.size() * spec_.head_dim),
          .v = rows(plan_.kv_heads.size() * spec_.value_dim),
          .attended = rows(plan_.heads.size() * spec_.value_dim),
          .gate = rows(plan_.ffn.size()),
          .up = rows(plan_.ffn.size())};
}

Decoder::Hidden Decoder::Encode(LayerContext& context, const Batch& batch,
                                const std::vector<kernels::KvPages>& pages) const {
  TANDEM_CHECK(pages.size() == layers_.size());
  const Activations buffers = TakeActivations(context.arena, batch.tokens);
  embedding_.Encode(context, batch.ids, batch.tokens, buffers.residual);
  const float* delta = nullptr;  // the first norm has nothing to add
  for (size_t index = 0; index < layers_.size(); ++index) {
    const Layer& layer = layers_[index];
    EncodeNorm(context, batch.tokens, buffers.residual, delta, layer.attn_norm, buffers.normed);
    EncodeAttention(context, batch, layer, pages[index], buffers);
    EncodeNorm(context, batch.tokens, buffers.residual, buffers.delta, layer.ffn_norm,
               buffers.normed);
    EncodeFeedForward(context, batch, layer, buffers);
    delta = buffers.delta;
  }
  return {.residual = buffers.residual, .delta = buffers.delta};
}

void Decoder::EncodeAttention(LayerContext& context, const Batch& batch, const Layer& layer,
                              const kernels::KvPages& pages, const Activations& buffers) const {
  const GroupBatch& group = batch.groups[layer.group];
  layer.qkv.Encode(context, buffers.normed, batch.tokens, buffers.q, buffers.k, buffers.v);
  EncodeHeadNorms(context, layer, batch.tokens, buffers);
  context.backend.RopeWriteKv({.q = buffers.q,
                               .k = buffers.k,
                               .v = buffers.v,
                               .tokens = batch.tokens,
                               .heads = plan_.heads.size(),
                               .positions = batch.positions,
                               .slots = group.slots,
                               .inv_freq = inv_freq_,
                               .rotary_begin = 0,
                               .rotary_dims = spec_.rope.rotary_dims,
                               .halves = spec_.rope.pairing == model::RopePairing::kHalves,
                               .magnitude = spec_.rope.magnitude,
                               .pages = pages});
  context.backend.Attention({.q = buffers.q,
                             .tokens = batch.tokens,
                             .num_seqs = batch.num_seqs,
                             .query_offsets = batch.query_offsets,
                             .context_lens = batch.context_lens,
                             .block_tables = group.block_tables,
                             .table_stride = group.table_stride,
                             .pages = pages,
                             .heads = plan_.heads.size(),
                             .first_head = plan_.heads.begin,
                             .heads_per_kv = spec_.num_heads / spec_.num_kv_heads,
                             .first_kv_head = plan_.kv_heads.begin,
                             .scale = spec_.attention_scale,
                             .softcap = 0.0f,
                             .sinks = nullptr,
                             .window = layer.window,
                             .max_query_len = batch.max_query_len,
                             .max_context_len = batch.max_context_len,
                             .out = buffers.attended});
  layer.attn_output.Encode(context, buffers.attended, batch.tokens, buffers.delta);
}

void Decoder::EncodeHeadNorms(LayerContext& context, const Layer& layer, uint32_t tokens,
                              const Activations& buffers) const {
  auto norm = [&](float* heads, uint32_t num_heads, const float* weight) {
    context.backend.RmsNorm({.residual = heads,
                             .add = nullptr,
                             .weight = weight,
                             .epsilon = spec_.norm_epsilon,
                             .rows = tokens * num_heads,
                             .dim = spec_.head_dim,
                             .out = heads});
  };
  if (layer.q_norm != nullptr) norm(buffers.q, plan_.heads.size(), layer.q_norm);
  if (layer.k_norm != nullptr) norm(buffers.k, plan_.kv_heads.size(), layer.k_norm);
}

void Decoder::EncodeFeedForward(LayerContext& context, const Batch& batch, const Layer& layer,
                                const Activations& buffers) const {
  layer.gate_up.Encode(context, buffers.normed, batch.tokens, buffers.gate, buffers.up);
  context.backend.Activate({.function = kernels::Activation::kSilu,
                            .gate = buffers.gate,
                            .up = buffers.up,
                            .rows = batch.tokens,
                            .cols = plan_.ffn.size(),
                            .out = buffers.gate});
  layer.down.Encode(context, buffers.gate, batch.tokens, buffers.delta);
}

void Decoder::EncodeNorm(LayerContext& context, uint32_t rows, float* residual, const float* add,
                         const float* weight, float* out) const {
  context.backend.RmsNorm({.residual = residual,
                           .add = add,
                           .weight = weight,
                           .epsilon = spec_.norm_epsilon,
                           .rows = rows,
                           .dim = spec_.hidden_size,
                           .out = out});
}

float* Decoder::EncodeHead(LayerContext& context, const Hidden& hidden, const int32_t* rows,
                           uint32_t count) const {
  const size_t floats = static_cast<size_t>(count) * spec_.hidden_size;
  auto gather = [&](const float* src) {
    float* out = context.arena.Take<float>(floats);
    context.backend.GatherRows(
        {.src = src, .rows = rows, .count = count, .dim = spec_.hidden_size, .out = out});
    return out;
  };
  float* residual = gather(hidden.residual);
  const float* delta = gather(hidden.delta);
  float* normed = context.arena.Take<float>(floats);
  EncodeNorm(context, count, residual, delta, output_norm_, normed);
  return head_.Encode(context, normed, count, plan_.rank);
}

}  // namespace tandem::worker
