// A dense FFN beside a mixture of experts, with norms before and after each.
#include <memory>

#include "worker/model/feed_forward.h"

namespace tandem::worker {
namespace {

using model::Role;

class DenseBesideMixture final : public FeedForwardBlock {
 public:
  DenseBesideMixture(const model::ModelSpec& spec, const model::ShardPlan& plan,
                     const RankWeights& weights, int layer)
      : hidden_(spec.hidden_size),
        dense_(MakeDenseFeedForward(spec, weights, /*adapters=*/RankAdapters(), layer)),
        experts_(MakeMixture(spec, plan, weights, layer)) {
    const auto norm = [&](Role role) {
      return Norm{.weight = weights.Vector(role, layer),
                  .epsilon = spec.norm_epsilon,
                  .dim = spec.hidden_size};
    };
    dense_post_norm_ = norm(Role::kDensePostNorm);
    expert_norm_ = norm(Role::kExpertNorm);
    expert_post_norm_ = norm(Role::kExpertPostNorm);
  }

  void Encode(LayerContext& context, const NormedRows& rows, uint32_t tokens,
              float* out) const override {
    const size_t mark = context.arena.used();
    const size_t values = static_cast<size_t>(tokens) * hidden_;
    float* x = context.arena.TakeActivations(values);
    float* experts = context.arena.TakeActivations(values);
    dense_->Encode(context, rows, tokens, out);
    dense_post_norm_.Encode(context, tokens, out, nullptr, out);
    experts_->Encode(context,
                     {.norm = expert_norm_.Params(tokens, rows.residual, nullptr, x),
                      .x = x,
                      .residual = rows.residual},
                     tokens, experts);
    expert_post_norm_.Encode(context, tokens, experts, nullptr, experts);
    context.backend.Encode(kernels::AddRowsParams{
        .y = out, .x = experts, .gate = nullptr, .rows = tokens, .dim = hidden_});
    context.arena.Rewind(mark);
  }

 private:
  uint32_t hidden_;
  std::unique_ptr<FeedForwardBlock> dense_;
  std::unique_ptr<FeedForwardBlock> experts_;
  Norm dense_post_norm_;
  Norm expert_norm_;
  Norm expert_post_norm_;
};

}  // namespace

std::unique_ptr<FeedForwardBlock> MakeDenseBesideMixture(const model::ModelSpec& spec,
                                                         const model::ShardPlan& plan,
                                                         const RankWeights& weights, int layer) {
  return std::make_unique<DenseBesideMixture>(spec, plan, weights, layer);
}

}  // namespace tandem::worker
