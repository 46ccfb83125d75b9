// A mixture of experts: every rank routes all tokens identically, then computes its columns of
// every expert, or the whole experts assigned to it; one all-reduce completes the result.
#include <variant>

#include "worker/model/feed_forward.h"

namespace tandem::worker {
namespace {

using model::Role;

class Mixture final : public FeedForwardBlock {
 public:
  Mixture(const model::ModelSpec& spec, const model::ShardPlan& plan, const RankWeights& weights,
          int layer)
      : hidden_(spec.hidden_size),
        moe_(*spec.moe),
        activation_(ActivationOf(spec)),
        plan_(plan),
        router_({weights.Matrix(Role::kRouter, layer), weights.Vector(Role::kRouterBias, layer)}),
        router_norm_({.weight = weights.Vector(Role::kRouterNorm, layer),
                      .epsilon = spec.norm_epsilon,
                      .dim = spec.hidden_size}),
        selection_bias_(weights.Vector(Role::kSelectionBias, layer)),
        expert_scale_(weights.Vector(Role::kExpertScale, layer)) {
    const auto expert = [&](Role matrix, Role bias) {
      return Linear{weights.Matrix(matrix, layer), weights.Vector(bias, layer)};
    };
    gate_ = expert(Role::kExpertGate, Role::kExpertGateBias);
    up_ = expert(Role::kExpertUp, Role::kExpertUpBias);
    down_ = expert(Role::kExpertDown, Role::kExpertDownBias);
    if (spec.Has(model::Feature::kSharedExperts)) {
      shared_ = FeedForward(activation_, {weights.Matrix(Role::kSharedGate, layer), nullptr},
                            {weights.Matrix(Role::kSharedUp, layer), nullptr},
                            {weights.Matrix(Role::kSharedDown, layer), nullptr});
      has_shared_ = true;
    }
    if (spec.Has(model::Feature::kSharedGate)) {
      shared_weight_ = ColumnParallelLinear({weights.Matrix(Role::kSharedWeight, layer), nullptr});
      weighs_shared_ = true;
    }
  }

  void Encode(LayerContext& context, const NormedRows& rows, uint32_t tokens,
              float* out) const override {
    const size_t mark = context.arena.used();
    const float* x = rows.Encode(context);
    const Choice choice = EncodeRoute(context, RouterInput(context, rows, tokens), tokens);
    EncodeExperts(context, x, tokens, choice, out);
    if (has_shared_) EncodeShared(context, x, tokens, out);
    SumOverRanks(context, tokens, hidden_, out);
    context.arena.Rewind(mark);
  }

 private:
  struct Choice {
    int32_t* ids;    // (T, experts_per_token)
    float* weights;  // likewise
  };

  // What the router reads: the experts' input, or the residual through the router's own norm.
  const float* RouterInput(LayerContext& context, const NormedRows& rows, uint32_t tokens) const {
    if (!moe_.beside_dense) return rows.x;
    float* x = context.arena.TakeActivations(static_cast<size_t>(tokens) * hidden_);
    router_norm_.Encode(context, tokens, rows.residual, nullptr, x);
    return x;
  }

  Choice EncodeRoute(LayerContext& context, const float* x, uint32_t tokens) const {
    const size_t pairs = static_cast<size_t>(tokens) * moe_.experts_per_token;
    const Choice choice{context.arena.Take<int32_t>(pairs), context.arena.Take<float>(pairs)};
    float* logits = context.arena.Take<float>(static_cast<size_t>(tokens) * moe_.num_experts);
    router_.Encode(context, x, tokens, logits);
    context.backend.Encode(kernels::RouteParams{.logits = logits,
                                                .lengths = context.lengths,
                                                .tokens = tokens,
                                                .experts = moe_.num_experts,
                                                .top_k = moe_.experts_per_token,
                                                .sigmoid = moe_.sigmoid,
                                                .normalize = moe_.normalize,
                                                .scale = moe_.scale,
                                                .selection_bias = selection_bias_,
                                                .groups = moe_.groups,
                                                .groups_kept = moe_.groups_kept,
                                                .group_top = moe_.group_top,
                                                .ids = choice.ids,
                                                .weights = choice.weights,
                                                .expert_scale = expert_scale_});
    return choice;
  }

  kernels::ExpertMatMulParams Grouped(const float* x, uint32_t x_stride, uint32_t tokens,
                                      const Choice& choice) const {
    kernels::ExpertMatMulParams params{};
    params.x = x;
    params.tokens = tokens;
    params.x_stride = x_stride;
    params.top_k = moe_.experts_per_token;
    params.ids = choice.ids;
    params.expert_begin = plan_.experts.begin;
    params.num_experts = plan_.experts.size();
    return params;
  }

  static kernels::ExpertProjection Project(const Linear& linear, const float* bias, float* y) {
    return {.weight = linear.weight, .bias = bias, .bias_stride = linear.weight.rows, .y = y};
  }

  void EncodeExperts(LayerContext& context, const float* x, uint32_t tokens, const Choice& choice,
                     float* out) const {
    const uint32_t width = up_.weight.rows;  // FFN columns of this rank
    const uint32_t pairs = tokens * moe_.experts_per_token;
    float* gate = context.arena.TakeActivations(static_cast<size_t>(pairs) * width);
    float* up = context.arena.TakeActivations(static_cast<size_t>(pairs) * width);
    kernels::ExpertMatMulParams in = Grouped(x, hidden_, tokens, choice);
    in.num_projections = 2;
    in.projections[0] = Project(gate_, gate_.bias, gate);
    in.projections[1] = Project(up_, up_.bias, up);
    context.backend.Encode(in);
    // f(w gate) (w up) is w f(w gate) up: the second w stays the weight of the expert's output.
    const float* const gate_scale = moe_.weighs_input ? choice.weights : nullptr;
    context.backend.Encode(kernels::ActivateParams{.function = activation_,
                                                   .gate = gate,
                                                   .up = up,
                                                   .rows = pairs,
                                                   .cols = width,
                                                   .out = gate,
                                                   .gate_scale = gate_scale});
    // The bias of down is added once: by the rank of the expert, or by rank 0.
    const bool adds_bias =
        plan_.expert_parallel || context.comm == nullptr || context.comm->rank() == 0;
    kernels::ExpertMatMulParams back = Grouped(gate, width, tokens, choice);
    back.weights = choice.weights;
    back.num_projections = 1;
    back.projections[0] = Project(down_, adds_bias ? down_.bias : nullptr, out);
    context.backend.Encode(back);
  }

  void EncodeShared(LayerContext& context, const float* x, uint32_t tokens, float* out) const {
    float* shared = context.arena.TakeActivations(static_cast<size_t>(tokens) * hidden_);
    float* weight = nullptr;
    if (weighs_shared_) {
      weight = context.arena.TakeActivations(tokens);
      shared_weight_.Encode(context, x, tokens, weight);
    }
    kernels::FeedForwardParams params =
        shared_.Params(context, {.norm = {}, .x = x}, tokens, shared);
    params.down = kernels::MatMulAddParams{
        .product = std::get<kernels::MatMulParams>(params.down),
        .add = {.y = out, .x = shared, .gate = weight, .rows = tokens, .dim = hidden_}};
    context.backend.Encode(params);
  }

  uint32_t hidden_;
  model::MoeSpec moe_;
  kernels::Activation activation_;
  model::ShardPlan plan_;
  ColumnParallelLinear router_;
  Norm router_norm_;
  const float* selection_bias_;
  const float* expert_scale_;
  Linear gate_;
  Linear up_;
  Linear down_;
  FeedForward shared_;
  bool has_shared_ = false;
  ColumnParallelLinear shared_weight_;
  bool weighs_shared_ = false;
};

}  // namespace

std::unique_ptr<FeedForwardBlock> MakeMixture(const model::ModelSpec& spec,
                                              const model::ShardPlan& plan,
                                              const RankWeights& weights, int layer) {
  return std::make_unique<Mixture>(spec, plan, weights, layer);
}

}  // namespace tandem::worker
