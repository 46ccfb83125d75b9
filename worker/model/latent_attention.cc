// Multi-head latent attention by weight absorption. K's up-projection moves to the query side, so
// that attention runs over the cached rows as one KV head; V's is applied after attention.
#include "common/base/check.h"
#include "worker/layers/linear.h"
#include "worker/layers/norm.h"
#include "worker/model/attention.h"

namespace tandem::worker {
namespace {

using model::Role;

class LatentAttention final : public AttentionBlock {
 public:
  explicit LatentAttention(const AttentionParts& parts)
      : AttentionBlock(parts),
        mla_(*parts.spec.mla),
        query_({Matrix(mla_.q_rank == 0 ? Role::kAttnQ : Role::kQueryUp), nullptr}),
        latent_down_(Matrix(Role::kLatentDown)),
        key_rope_down_(Matrix(Role::kLatentKeyRope)),
        output_({Matrix(Role::kAttnOutput), nullptr}) {
    if (mla_.q_rank != 0) {
      query_down_ = ColumnParallelLinear({Matrix(Role::kQueryDown), nullptr});
      query_norm_ = LatentNorm(Role::kQueryNorm, mla_.q_rank);
    }
  }

  void Encode(LayerContext& context, const Batch& batch, const LayerCache& cache,
              const NormedRows& normed, float* out) const override {
    const uint32_t heads = parts_.plan.heads.size();
    const size_t mark = context.arena.used();
    const auto rows = [&](uint32_t width) {
      return context.arena.TakeActivations(static_cast<size_t>(batch.tokens) * width);
    };
    float* absorbed = rows(heads * row_dims());
    float* k = rows(row_dims());
    float* attended = rows(heads * mla_.kv_rank);
    float* values = rows(heads * mla_.value_dims);
    const float* x = normed.Encode(context);
    EncodeQuery(context, x, batch.tokens, absorbed);
    EncodeLatent(context, x, batch.tokens, k);
    context.backend.Encode(WriteParams(batch, cache.pages, absorbed, k, nullptr));
    context.backend.Encode(AttendParams(batch, cache.pages, absorbed, attended));
    EncodeValues(context, batch.tokens, attended, values);
    output_.Encode(context, values, batch.tokens, out);
    context.arena.Rewind(mark);
  }

 private:
  uint32_t query_dims() const { return mla_.nope_dims + mla_.rope_dims; }
  // A cached row: the latent, then the rotated part of K.
  uint32_t row_dims() const { return mla_.kv_rank + mla_.rope_dims; }

  const kernels::Weight& Matrix(Role role) const {
    return parts_.weights.Matrix(role, parts_.layer);
  }
  Norm LatentNorm(Role role, uint32_t dim) const {
    return {.weight = parts_.weights.Vector(role, parts_.layer),
            .epsilon = parts_.spec.norm_epsilon,
            .dim = dim};
  }

  // absorbed[t, h] = (transposed K up-projection of head h) q_nope[t, h], then q_rope[t, h].
  void EncodeQuery(LayerContext& context, const float* x, uint32_t tokens, float* absorbed) const {
    const uint32_t heads = parts_.plan.heads.size();
    float* q = context.arena.TakeActivations(static_cast<size_t>(tokens) * heads * query_dims());
    NormedRows rows = {.norm = {}, .x = x};
    if (mla_.q_rank != 0) {
      float* low = context.arena.TakeActivations(static_cast<size_t>(tokens) * mla_.q_rank);
      query_down_.Encode(context, x, tokens, low);
      rows = {query_norm_.Params(tokens, low, nullptr, low), low};
    }
    context.backend.Encode(kernels::NormMatMulParams{
        .norm = rows.norm, .product = query_.Params(rows.x, tokens, {q})});
    const bool joint = parts_.spec.Has(model::Feature::kJointKvB);
    context.backend.Encode(kernels::HeadMatMulParams{
        .x = q,
        .tokens = tokens,
        .heads = heads,
        .x_token_stride = heads * query_dims(),
        .x_head_stride = query_dims(),
        .weight = Matrix(joint ? Role::kLatentUp : Role::kLatentKeyUp),
        .rows_per_head = joint ? mla_.nope_dims + mla_.value_dims : mla_.kv_rank,
        .row_begin = 0,
        .row_count = joint ? mla_.nope_dims : mla_.kv_rank,
        .transposed = joint,
        .y = absorbed,
        .y_token_stride = heads * row_dims(),
        .y_head_stride = row_dims()});
    context.backend.Encode(kernels::CopyRowsParams{.x = q + mla_.nope_dims,
                                                   .x_stride = query_dims(),
                                                   .rows = tokens * heads,
                                                   .dim = mla_.rope_dims,
                                                   .y = absorbed + mla_.kv_rank,
                                                   .y_stride = row_dims()});
  }

  // k[t] = the normed latent, then the RoPE part of K.
  void EncodeLatent(LayerContext& context, const float* x, uint32_t tokens, float* k) const {
    float* latent = context.arena.TakeActivations(static_cast<size_t>(tokens) * mla_.kv_rank);
    kernels::MatMulParams params{};
    params.x = x;
    params.tokens = tokens;
    params.x_stride = latent_down_.col_count;
    params.num_projections = 2;
    params.projections[0] = {
        .weight = latent_down_, .bias = nullptr, .y = latent, .y_stride = mla_.kv_rank};
    params.projections[1] = {
        .weight = key_rope_down_, .bias = nullptr, .y = k + mla_.kv_rank, .y_stride = row_dims()};
    context.backend.Encode(params);
    context.backend.Encode(
        kernels::RmsNormParams{.residual = latent,
                               .add = nullptr,
                               .weight = parts_.weights.Vector(Role::kLatentNorm, parts_.layer),
                               .epsilon = parts_.spec.norm_epsilon,
                               .rows = tokens,
                               .dim = mla_.kv_rank,
                               .out = k,
                               .out_stride = row_dims()});
  }

  // values[t, h] = (V's up-projection of head h) attended[t, h].
  void EncodeValues(LayerContext& context, uint32_t tokens, const float* attended,
                    float* values) const {
    const uint32_t heads = parts_.plan.heads.size();
    const bool joint = parts_.spec.Has(model::Feature::kJointKvB);
    context.backend.Encode(kernels::HeadMatMulParams{
        .x = attended,
        .tokens = tokens,
        .heads = heads,
        .x_token_stride = heads * mla_.kv_rank,
        .x_head_stride = mla_.kv_rank,
        .weight = Matrix(joint ? Role::kLatentUp : Role::kLatentValueUp),
        .rows_per_head = joint ? mla_.nope_dims + mla_.value_dims : mla_.value_dims,
        .row_begin = joint ? mla_.nope_dims : 0,
        .row_count = mla_.value_dims,
        .transposed = false,
        .y = values,
        .y_token_stride = heads * mla_.value_dims,
        .y_head_stride = mla_.value_dims});
  }

  model::MlaSpec mla_;
  ColumnParallelLinear query_;
  ColumnParallelLinear query_down_;  // of a compressed query
  Norm query_norm_;
  kernels::Weight latent_down_;
  kernels::Weight key_rope_down_;
  RowParallelLinear output_;
};

}  // namespace

std::unique_ptr<AttentionBlock> MakeLatentAttention(const AttentionParts& parts) {
  TANDEM_CHECK(parts.spec.mla.has_value());
  return std::make_unique<LatentAttention>(parts);
}

}  // namespace tandem::worker
