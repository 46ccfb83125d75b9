// Grouped-query attention (Ainslie et al., 2023, arXiv:2305.13245), with biases and per-head norms
// if the model has them.
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
        qkv_({Part(Role::kAttnQ, Role::kAttnQBias), Part(Role::kAttnK, Role::kAttnKBias),
              Part(Role::kAttnV, Role::kAttnVBias)}),
        q_norm_(HeadNorm(Role::kAttnQNorm)),
        k_norm_(HeadNorm(Role::kAttnKNorm)),
        output_(Part(Role::kAttnOutput, Role::kAttnOutputBias)) {}

  void Encode(LayerContext& context, const Batch& batch, const kernels::KvPages& pages,
              const NormedRows& x, float* out) const override {
    const model::HeadSizes& sizes = parts_.heads;
    const uint32_t heads = parts_.plan.heads.size();
    const uint32_t kv_heads = KvHeadRange(parts_.spec, parts_.plan, sizes).size();
    const size_t mark = context.arena.used();
    const auto rows = [&](uint32_t width) {
      return context.arena.TakeActivations(static_cast<size_t>(batch.tokens) * width);
    };
    float* q = rows(heads * sizes.head_dim);
    float* k = rows(kv_heads * sizes.head_dim);
    float* v = rows(kv_heads * sizes.value_dim);
    float* attended = rows(heads * sizes.value_dim);
    context.backend.Encode(
        kernels::QkvParams{.norm = x.norm,
                           .product = qkv_.Params(x.x, batch.tokens, {q, k, v}),
                           .q_norm = q_norm_.Params(batch.tokens * heads, q, nullptr, q),
                           .k_norm = k_norm_.Params(batch.tokens * kv_heads, k, nullptr, k),
                           .write = WriteParams(batch, pages, q, k, v)});
    EncodeAttention(context, batch, pages, q, attended);
    output_.Encode(context, attended, batch.tokens, out);
    context.arena.Rewind(mark);
  }

 private:
  Linear Part(Role matrix, Role bias) const {
    return {parts_.weights.Matrix(matrix, parts_.layer), parts_.weights.Vector(bias, parts_.layer)};
  }
  Norm HeadNorm(Role role) const {
    return {.weight = parts_.weights.Vector(role, parts_.layer),
            .epsilon = parts_.spec.norm_epsilon,
            .dim = parts_.heads.head_dim};
  }

  ColumnParallelLinear qkv_;
  Norm q_norm_;
  Norm k_norm_;
  RowParallelLinear output_;
};

}  // namespace

std::unique_ptr<AttentionBlock> MakeGroupedQueryAttention(const AttentionParts& parts) {
  return std::make_unique<GroupedQueryAttention>(parts);
}

}  // namespace tandem::worker
