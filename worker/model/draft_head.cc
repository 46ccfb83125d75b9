#include "worker/model/draft_head.h"

#include <utility>

#include "common/base/check.h"

namespace tandem::worker {
namespace {

using model::Feature;
using model::Role;

int LayerOf(const ModelParts& parts) { return static_cast<int>(parts.spec.num_layers); }

const kernels::Weight& EmbeddingOf(const ModelParts& parts) {
  return parts.spec.Has(Feature::kDraftEmbedding)
             ? parts.weights.Matrix(Role::kDraftEmbedding, LayerOf(parts))
             : parts.weights.Matrix(Role::kTokenEmbedding);
}

Norm OutputNormOf(const ModelParts& parts) {
  return parts.spec.Has(Feature::kDraftNorm)
             ? MakeNorm(parts, LayerOf(parts), Role::kDraftOutputNorm)
             : MakeNorm(parts, -1, Role::kOutputNorm, Role::kOutputNormBias);
}

const kernels::Weight& OutputOf(const ModelParts& parts) {
  return parts.spec.Has(Feature::kDraftOutput)
             ? parts.weights.Matrix(Role::kDraftOutput, LayerOf(parts))
             : OutputMatrix(parts);
}

}  // namespace

DraftHead::DraftHead(const ModelParts& parts, std::vector<uint32_t> vocab_starts)
    : hidden_(parts.spec.hidden_size),
      embedding_(EmbeddingOf(parts), parts.plan.vocab.begin, parts.spec.embedding_scale),
      embedding_norm_(MakeNorm(parts, LayerOf(parts), Role::kDraftEmbeddingNorm)),
      state_norm_(MakeNorm(parts, LayerOf(parts), Role::kDraftHiddenNorm)),
      projection_({parts.weights.Matrix(Role::kDraftProjection, LayerOf(parts)), nullptr}),
      layer_(parts, parts.spec.num_layers),
      output_(parts, OutputNormOf(parts), OutputOf(parts), std::move(vocab_starts)) {
  TANDEM_CHECK(parts.spec.has_draft_head);
}

Hidden DraftHead::Encode(LayerContext& context, const Batch& batch, float* states,
                         const std::vector<kernels::KvPages>& pages) const {
  context.lengths = batch.RowLengths();
  const auto rows = [&](size_t width) {
    return context.arena.TakeActivations(static_cast<size_t>(batch.tokens) * width);
  };
  const Hidden hidden{.residual = rows(hidden_), .delta = rows(hidden_)};
  const size_t mark = context.arena.used();
  float* const input = rows(size_t{2} * hidden_);
  embedding_.Encode(context, batch.ids, batch.tokens, hidden.delta);
  EncodeInput(context, embedding_norm_, batch.tokens, hidden.delta, input);
  EncodeInput(context, state_norm_, batch.tokens, states, input + hidden_);
  projection_.Encode(context, input, batch.tokens, hidden.residual);
  context.arena.Rewind(mark);
  float* const normed = rows(hidden_);
  const LayerStates none;
  layer_.Encode(context, batch, {pages.back(), none}, /*add=*/nullptr, normed, hidden);
  return hidden;
}

void DraftHead::EncodeInput(LayerContext& context, const Norm& norm, uint32_t tokens, float* x,
                            float* to) const {
  context.backend.Encode(kernels::RmsNormParams{.residual = x,
                                                .add = nullptr,
                                                .weight = norm.weight,
                                                .epsilon = norm.epsilon,
                                                .rows = tokens,
                                                .dim = hidden_,
                                                .out = to,
                                                .out_stride = 2 * hidden_});
}

}  // namespace tandem::worker
