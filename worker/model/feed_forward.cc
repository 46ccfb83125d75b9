#include "worker/model/feed_forward.h"

#include <algorithm>

namespace tandem::worker {

using model::Role;

kernels::Activation ActivationOf(const model::ModelSpec& spec) {
  switch (spec.activation) {
    case model::ActivationKind::kSilu:
      return kernels::Activation::kSilu;
    case model::ActivationKind::kGelu:
      return kernels::Activation::kGeluTanh;
    case model::ActivationKind::kClampedSwiGlu:
      return kernels::Activation::kClampedSwiGlu;
  }
  return kernels::Activation::kSilu;
}

FeedForward::FeedForward(kernels::Activation activation, Linear gate, Linear up, Linear down)
    : activation_(activation),
      gated_(gate.weight.data != nullptr),
      width_(up.weight.rows),
      up_(gated_ ? std::vector{gate, up} : std::vector{up}),
      down_(down) {}

kernels::FeedForwardParams FeedForward::Params(LayerContext& context, const NormedRows& x,
                                               uint32_t tokens, float* out) const {
  const size_t values = static_cast<size_t>(tokens) * width_;
  float* gate = context.arena.TakeActivations(values);
  float* up = gated_ ? context.arena.TakeActivations(values) : nullptr;
  return {.norm = x.norm,
          .up = gated_ ? up_.Params(x.x, tokens, {gate, up}) : up_.Params(x.x, tokens, {gate}),
          .activate = {.function = activation_,
                       .gate = gate,
                       .up = up,
                       .rows = tokens,
                       .cols = width_,
                       .out = gate},
          .down = down_.Params(context, gate, tokens, out)};
}

void FeedForward::Encode(LayerContext& context, const NormedRows& x, uint32_t tokens,
                         float* out) const {
  const size_t mark = context.arena.used();
  const kernels::FeedForwardParams params = Params(context, x, tokens, out);
  if (!context.adapts()) {
    context.backend.Encode(params);
  } else {
    const auto& down = std::get<kernels::MatMulParams>(params.down);
    EncodeNorm(context, params.norm);
    context.backend.Encode(params.up);
    up_.EncodeAdapters(context, params.up);
    context.backend.Encode(params.activate);
    context.backend.Encode(down);
    down_.EncodeAdapters(context, down);
  }
  context.arena.Rewind(mark);
}

namespace {

class DenseFeedForward final : public FeedForwardBlock {
 public:
  DenseFeedForward(const model::ModelSpec& spec, const RankWeights& weights,
                   const RankAdapters& adapters, int layer)
      : hidden_(spec.hidden_size) {
    const auto linear = [&](Role matrix, Role bias) {
      return Linear{weights.Matrix(matrix, layer), weights.Vector(bias, layer),
                    adapters.Of(matrix, layer)};
    };
    ffn_ = FeedForward(
        ActivationOf(spec), spec.gated_ffn ? linear(Role::kFfnGate, Role::kFfnGateBias) : Linear{},
        linear(Role::kFfnUp, Role::kFfnUpBias), linear(Role::kFfnDown, Role::kFfnDownBias));
  }

  void Encode(LayerContext& context, const NormedRows& x, uint32_t tokens,
              float* out) const override {
    ffn_.Encode(context, x, tokens, out);
    SumOverRanks(context, tokens, hidden_, out);
  }

 private:
  uint32_t hidden_;
  FeedForward ffn_;
};

}  // namespace

std::unique_ptr<FeedForwardBlock> MakeDenseFeedForward(const model::ModelSpec& spec,
                                                       const RankWeights& weights,
                                                       const RankAdapters& adapters, int layer) {
  return std::make_unique<DenseFeedForward>(spec, weights, adapters, layer);
}

}  // namespace tandem::worker
