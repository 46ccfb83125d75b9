// Grouped-query attention (Ainslie et al., 2023, arXiv:2305.13245), with biases, with norms of q
// and k, per head or of all heads together, and with a gate on the output, if the model has them. A
// layer that reads the cache of another one projects only queries.
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
        q_norm_(QkNorm(Role::kAttnQNorm, parts.plan.heads.size())),
        k_norm_(QkNorm(Role::kAttnKNorm, kv_heads())),
        v_norm_(HeadNorm(parts.weights.ones())),
        gated_(parts.weights.Has(Role::kAttnGate, parts.layer)),
        output_(Part(Role::kAttnOutput, Role::kAttnOutputBias)) {
    if (gated_) {
      gate_ =
          ColumnParallelLinear(Linear{parts.weights.Matrix(Role::kAttnGate, parts.layer), nullptr,
                                      parts.adapters.Of(Role::kAttnGate, parts.layer)});
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
    EncodeOutput(context, AttendParams(batch, cache.pages, q, attended), in.x, out);
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
    kernels::QkvParams qkv{
        .norm = x.norm,
        .product = parts_.values_are_keys ? qkv_.Params(x.x, batch.tokens, {q, k})
                                          : qkv_.Params(x.x, batch.tokens, {q, k, v}),
        .v_norm = v_norm_.Params(batch.tokens * kv_heads, projected_v, nullptr, v),
        .q_norm = q_norm_.Params(NormRows(batch, heads), q, nullptr, q),
        .k_norm = k_norm_.Params(NormRows(batch, kv_heads), k, nullptr, k),
        .write = WriteParams(batch, pages, q, k, v)};
    if (parts_.spec.joint_qk_norm && parts_.plan.size > 1) {
      EncodeJointly(context, qkv);
    } else {
      EncodeOp(context, qkv);
    }
  }

  void EncodeQuery(LayerContext& context, const Batch& batch, kernels::KvPages pages,
                   const NormedRows& x, float* q) const {
    const uint32_t heads = parts_.plan.heads.size();
    pages.kv_heads = 0;
    EncodeOp(context, {.norm = x.norm,
                       .product = qkv_.Params(x.x, batch.tokens, {q}),
                       .v_norm = {},
                       .q_norm = q_norm_.Params(NormRows(batch, heads), q, nullptr, q),
                       .k_norm = {},
                       .write = WriteParams(batch, pages, q, nullptr, nullptr)});
  }

  // As one op, unless adapters change what it projects.
  void EncodeOp(LayerContext& context, const kernels::QkvParams& qkv) const {
    if (!context.adapts()) return context.backend.Encode(qkv);
    EncodeProduct(context, qkv);
    EncodeNorm(context, qkv.v_norm);
    EncodeNorm(context, qkv.q_norm);
    EncodeNorm(context, qkv.k_norm);
    context.backend.Encode(qkv.write);
  }

  void EncodeProduct(LayerContext& context, const kernels::QkvParams& qkv) const {
    if (!context.adapts()) {
      context.backend.Encode(kernels::NormMatMulParams{.norm = qkv.norm, .product = qkv.product});
      return;
    }
    EncodeNorm(context, qkv.norm);
    context.backend.Encode(qkv.product);
    qkv_.EncodeAdapters(context, qkv.product);
  }

  void EncodeOutput(LayerContext& context, const kernels::AttentionParams& attention,
                    const float* x, float* out) const {
    const kernels::MatMulParams product =
        output_.Params(context, attention.out, attention.tokens, out);
    if (gated_ || context.adapts()) {
      context.backend.Encode(attention);
      if (gated_) EncodeGate(context, x, attention.tokens, attention.out);
      context.backend.Encode(product);
      output_.EncodeAdapters(context, product);
    } else {
      context.backend.Encode(kernels::AttentionMatMulParams{attention, product});
    }
    SumOverRanks(context, attention.tokens, product.projections[0].weight.rows, out);
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
    return {parts_.weights.Matrix(matrix, parts_.layer), parts_.weights.Vector(bias, parts_.layer),
            parts_.adapters.Of(matrix, parts_.layer)};
  }
  Norm HeadNorm(const float* weight) const {
    return {.weight = weight, .epsilon = parts_.spec.norm_epsilon, .dim = parts_.heads.head_dim};
  }

  // Of each of the heads, or of all together.
  Norm QkNorm(Role role, uint32_t heads) const {
    Norm norm = HeadNorm(parts_.weights.Vector(role, parts_.layer));
    if (parts_.spec.joint_qk_norm) norm.dim *= heads;
    return norm;
  }
  uint32_t NormRows(const Batch& batch, uint32_t heads) const {
    return batch.tokens * (parts_.spec.joint_qk_norm ? 1 : heads);
  }
  uint32_t kv_heads() const { return KvHeadRange(parts_.spec, parts_.plan, parts_.heads).size(); }

  // RMS norms over the heads of all ranks: every rank sums the squares of its own heads, and an
  // all-reduce adds the sums in the order of ranks.
  void EncodeJointly(LayerContext& context, kernels::QkvParams& qkv) const {
    const uint32_t tokens = qkv.write.tokens;
    // Both sums of a token are added in one all-reduce.
    float* const sums = context.arena.Take<float>(2 * size_t{tokens});
    EncodeProduct(context, qkv);
    EncodeNorm(context, qkv.v_norm);
    EncodeSum(context, tokens, qkv.write.q, parts_.plan.heads.size(), 0, sums);
    EncodeSum(context, tokens, qkv.write.k, kv_heads(), KvHeadsOfOthers(), sums + tokens);
    SumOverRanks(context, tokens, 2, sums);
    const auto norm = [&](kernels::NormParams& params, uint32_t heads, const float* sum) {
      kernels::VisitPart(params, [&](auto& one) {
        if constexpr (requires { one.sum_squares; }) {
          one.sum_squares = sum;
          one.sum_dim = heads * parts_.heads.head_dim;
        }
      });
      EncodeNorm(context, params);
    };
    norm(qkv.q_norm, parts_.spec.num_heads, sums);
    norm(qkv.k_norm, parts_.heads.num_kv_heads, sums + tokens);
    context.backend.Encode(qkv.write);
  }

  // The squares of x (T, heads * head_dim), without its first `uncounted` heads.
  void EncodeSum(LayerContext& context, uint32_t tokens, const float* x, uint32_t heads,
                 uint32_t uncounted, float* sums) const {
    const uint32_t head_dim = parts_.heads.head_dim;
    context.backend.Encode(kernels::SumSquaresParams{.x = x + uncounted * head_dim,
                                                     .x_stride = heads * head_dim,
                                                     .rows = tokens,
                                                     .dim = (heads - uncounted) * head_dim,
                                                     .sums = sums});
  }

  // A KV head that several ranks have counts on the one with the first of its query heads. At most
  // the first KV head of a rank counts elsewhere.
  uint32_t KvHeadsOfOthers() const {
    const uint32_t group = parts_.spec.num_heads / parts_.heads.num_kv_heads;
    return parts_.plan.heads.begin % group == 0 ? 0 : 1;
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
