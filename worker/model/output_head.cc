#include "worker/model/output_head.h"

#include <utility>

namespace tandem::worker {

using model::Role;

const kernels::Weight& OutputMatrix(const ModelParts& parts) {
  const bool tied = !parts.spec.Has(model::Feature::kUntiedHead);
  return parts.weights.Matrix(tied ? Role::kTokenEmbedding : Role::kOutput);
}

OutputHead::OutputHead(const ModelParts& parts, const Norm& norm, const kernels::Weight& head,
                       std::vector<uint32_t> vocab_starts)
    : rank_(parts.plan.rank),
      logit_softcap_(parts.spec.logit_softcap),
      norm_(norm),
      head_(head, std::move(vocab_starts)) {}

float* OutputHead::EncodeLogits(LayerContext& context, const Hidden& hidden, const int32_t* rows,
                                uint32_t count) const {
  const size_t floats = static_cast<size_t>(count) * norm_.dim;
  auto gather = [&](const float* src) {
    float* out = context.arena.TakeActivations(floats);
    context.backend.Encode(kernels::GatherRowsParams{
        .src = src, .rows = rows, .count = count, .dim = norm_.dim, .out = out});
    return out;
  };
  float* residual = gather(hidden.residual);
  const float* delta = hidden.delta == nullptr ? nullptr : gather(hidden.delta);
  float* normed = context.arena.TakeActivations(floats);
  const NormedRows x = {norm_.Params(count, residual, delta, normed), normed, residual};
  float* logits = head_.Encode(context, x, count, rank_);
  if (logits != nullptr && logit_softcap_ > 0.0f) {
    context.backend.Encode(
        kernels::SoftCapParams{.x = logits,
                               .count = static_cast<size_t>(count) * head_.vocab_size(),
                               .cap = logit_softcap_});
  }
  return logits;
}

float* OutputHead::EncodeStates(LayerContext& context, uint32_t tokens, Hidden& hidden) const {
  float* states = hidden.spare;
  if (states == nullptr) {
    states = context.arena.TakeActivations(static_cast<size_t>(tokens) * norm_.dim);
  }
  norm_.Encode(context, tokens, hidden.residual, hidden.delta, states);
  hidden.delta = nullptr;
  return states;
}

}  // namespace tandem::worker
