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
      down_(down) {
  if (gated_) {
    gate_up_ = MergedColumnParallelLinear(gate, up);
  } else {
    up_ = ColumnParallelLinear(up);
  }
}

void FeedForward::EncodePart(LayerContext& context, const float* x, uint32_t tokens,
                             float* out) const {
  const size_t mark = context.arena.used();
  float* gate = context.arena.Take<float>(static_cast<size_t>(tokens) * width_);
  float* up = nullptr;
  if (gated_) {
    up = context.arena.Take<float>(static_cast<size_t>(tokens) * width_);
    gate_up_.Encode(context, x, tokens, gate, up);
  } else {
    up_.Encode(context, x, tokens, gate);
  }
  context.backend.Encode(kernels::ActivateParams{.function = activation_,
                                                 .gate = gate,
                                                 .up = up,
                                                 .rows = tokens,
                                                 .cols = width_,
                                                 .out = gate});
  down_.EncodePart(context, gate, tokens, out);
  context.arena.Rewind(mark);
}

namespace {

class DenseFeedForward final : public FeedForwardBlock {
 public:
  DenseFeedForward(const model::ModelSpec& spec, const RankWeights& weights, int layer)
      : hidden_(spec.hidden_size) {
    const auto linear = [&](Role matrix, Role bias) {
      return Linear{weights.Matrix(matrix, layer), weights.Vector(bias, layer)};
    };
    ffn_ = FeedForward(
        ActivationOf(spec), spec.gated_ffn ? linear(Role::kFfnGate, Role::kFfnGateBias) : Linear{},
        linear(Role::kFfnUp, Role::kFfnUpBias), linear(Role::kFfnDown, Role::kFfnDownBias));
  }

  void Encode(LayerContext& context, const float* x, uint32_t tokens, float* out) const override {
    ffn_.EncodePart(context, x, tokens, out);
    SumOverRanks(context, tokens, hidden_, out);
  }

 private:
  uint32_t hidden_;
  FeedForward ffn_;
};

}  // namespace

std::unique_ptr<FeedForwardBlock> MakeDenseFeedForward(const model::ModelSpec& spec,
                                                       const RankWeights& weights, int layer) {
  return std::make_unique<DenseFeedForward>(spec, weights, layer);
}

}  // namespace tandem::worker
