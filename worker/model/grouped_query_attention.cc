// Grouped-query attention (Ainslie et al., 2023, arXiv:2305.13245), with biases, per-head norms and
// a gate on the output if the model has them. A layer without a cache of its own has only queries.
#include <vector>

#include "worker/layers/linear.h"
#include "worker/layers/norm.h"
#include "worker/model/attention.h"

namespace tandem::worker {
namespace {

using model::Role;

class GroupedQueryAttention final : public AttentionBlock {
 public:
  explicit GroupedQueryAttention(const AttentionParts& parts)
      : AttentionBlock(parts),
        qkv_(Projections()),
        q_norm_(HeadNorm(parts.weights.Vector(Role::kAttnQNorm, parts.layer))),
        k_norm_(HeadNorm(parts.weights.Vector(Role::kAttnKNorm, parts.layer))),
        v_norm_(HeadNorm(parts.weights.ones())),
        gated_(parts.weights.Has(Role::kAttnGate, parts.layer)),
        output_(Part(Role::kAttnOutput, Role::kAttnOutputBias)) {
    if (gated_) {
      gate_ = ColumnParallelLinear({parts.weights.Matrix(Role::kAttnGate, parts.layer), nullptr});
    }
  }

  void Encode(LayerContext& context, const Batch& batch, const LayerCache& cache,
              const NormedRows& x, float* out) const override {
    const model::HeadSizes& sizes = parts_.heads;
    const uint32_t heads = parts_.plan.heads.size();
    const size_t mark = context.arena.used();
    float* q = Rows(context, batch, heads * sizes.head_dim);
    float* attended = Rows(context, batch, heads * sizes.value_dim);
    // The gate reads the normed rows too.
    const NormedRows in = gated_ ? NormedRows{.norm = {}, .x = x.Encode(context)} : x;
    if (parts_.has_cache) {
      EncodeQkv(context, batch, cache.pages, in, q);
    } else {
      EncodeQuery(context, batch, cache.pages, in, q);
    }
    EncodeAttention(context, batch, cache.pages, q, attended);
    if (gated_) EncodeGate(context, in.x, batch.tokens, attended);
    output_.Encode(context, attended, batch.tokens, out);
    context.arena.Rewind(mark);
  }

 private:
  static float* Rows(LayerContext& context, const Batch& batch, uint32_t width) {
    return context.arena.TakeActivations(static_cast<size_t>(batch.tokens) * width);
  }

  void EncodeQkv(LayerContext& context, const Batch& batch, const kernels::KvPages& pages,
                 const NormedRows& x, float* q) const {
    const uint32_t heads = parts_.plan.heads.size();
    const uint32_t kv_heads = pages.kv_heads;
    float* k = Rows(context, batch, kv_heads * parts_.heads.head_dim);
    float* v = Rows(context, batch, kv_heads * parts_.heads.value_dim);
    float* projected_v = parts_.values_are_keys ? k : v;
    context.backend.Encode(kernels::QkvParams{
        .norm = x.norm,
        .product = parts_.values_are_keys ? qkv_.Params(x.x, batch.tokens, {q, k})
                                          : qkv_.Params(x.x, batch.tokens, {q, k, v}),
        .v_norm = v_norm_.Params(batch.tokens * kv_heads, projected_v, nullptr, v),
        .q_norm = q_norm_.Params(batch.tokens * heads, q, nullptr, q),
        .k_norm = k_norm_.Params(batch.tokens * kv_heads, k, nullptr, k),
        .write = WriteParams(batch, pages, q, k, v)});
  }

  void EncodeQuery(LayerContext& context, const Batch& batch, kernels::KvPages pages,
                   const NormedRows& x, float* q) const {
    const uint32_t heads = parts_.plan.heads.size();
    pages.kv_heads = 0;
    context.backend.Encode(
        kernels::QkvParams{.norm = x.norm,
                           .product = qkv_.Params(x.x, batch.tokens, {q}),
                           .v_norm = {},
                           .q_norm = q_norm_.Params(batch.tokens * heads, q, nullptr, q),
                           .k_norm = {},
                           .write = WriteParams(batch, pages, q, nullptr, nullptr)});
  }

  std::vector<Linear> Projections() const {
    std::vector<Linear> projections = {Part(Role::kAttnQ, Role::kAttnQBias)};
    if (!parts_.has_cache) return projections;
    projections.push_back(Part(Role::kAttnK, Role::kAttnKBias));
    if (!parts_.values_are_keys) projections.push_back(Part(Role::kAttnV, Role::kAttnVBias));
    return projections;
  }

  // attended *= sigmoid(gate).
  void EncodeGate(LayerContext& context, const float* x, uint32_t tokens, float* attended) const {
    const uint32_t width = parts_.plan.heads.size() * parts_.heads.value_dim;
    float* gate = context.arena.TakeActivations(static_cast<size_t>(tokens) * width);
    gate_.Encode(context, x, tokens, gate);
    context.backend.Encode(kernels::ActivateParams{.function = kernels::Activation::kSigmoid,
                                                   .gate = gate,
                                                   .up = attended,
                                                   .rows = tokens,
                                                   .cols = width,
                                                   .out = attended});
  }

  Linear Part(Role matrix, Role bias) const {
    return {parts_.weights.Matrix(matrix, parts_.layer), parts_.weights.Vector(bias, parts_.layer)};
  }
  Norm HeadNorm(const float* weight) const {
    return {.weight = weight, .epsilon = parts_.spec.norm_epsilon, .dim = parts_.heads.head_dim};
  }

  ColumnParallelLinear qkv_;
  Norm q_norm_;
  Norm k_norm_;
  Norm v_norm_;
  bool gated_;
  ColumnParallelLinear gate_;  // of the output
  RowParallelLinear output_;
};

}  // namespace

std::unique_ptr<AttentionBlock> MakeGroupedQueryAttention(const AttentionParts& parts) {
  return std::make_unique<GroupedQueryAttention>(parts);
}

}  // namespace tandem::worker
