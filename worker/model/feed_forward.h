// The feed-forward block of a layer: a dense FFN, a mixture of experts, or both, by the spec.
#ifndef TANDEM_WORKER_MODEL_FEED_FORWARD_H_
#define TANDEM_WORKER_MODEL_FEED_FORWARD_H_

#include <cstdint>
#include <memory>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/linear.h"
#include "worker/layers/norm.h"
#include "worker/model/rank_adapters.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

class FeedForwardBlock {
 public:
  virtual ~FeedForwardBlock() = default;

  // Rows x (T, hidden) -> out (T, hidden), summed over ranks. Activations are taken from the
  // context's arena and released.
  virtual void Encode(LayerContext& context, const NormedRows& x, uint32_t tokens,
                      float* out) const = 0;
};

kernels::Activation ActivationOf(const model::ModelSpec& spec);

// An FFN, gated or plain; also used for the shared experts of a mixture.
class FeedForward {
 public:
  FeedForward() = default;
  // `gate.weight.data` is null in a plain one.
  FeedForward(kernels::Activation activation, Linear gate, Linear up, Linear down);

  // The rank's part of the sum over ranks, out (T, hidden). What lies between is taken from the
  // context's arena. `down` holds a MatMulParams.
  kernels::FeedForwardParams Params(LayerContext& context, const NormedRows& x, uint32_t tokens,
                                    float* out) const;
  // The same with the step's adapters, encoded.
  void Encode(LayerContext& context, const NormedRows& x, uint32_t tokens, float* out) const;

 private:
  kernels::Activation activation_ = kernels::Activation::kSilu;
  bool gated_ = true;
  uint32_t width_ = 0;       // FFN columns of this rank
  ColumnParallelLinear up_;  // gate and up, or up
  RowParallelLinear down_;
};

std::unique_ptr<FeedForwardBlock> MakeDenseFeedForward(const model::ModelSpec& spec,
                                                       const RankWeights& weights,
                                                       const RankAdapters& adapters, int layer);
std::unique_ptr<FeedForwardBlock> MakeMixture(const model::ModelSpec& spec,
                                              const model::ShardPlan& plan,
                                              const RankWeights& weights, int layer);
// The sum of a dense FFN and a mixture of experts. Each reads the residual through a norm of its
// own, and its output is normed.
std::unique_ptr<FeedForwardBlock> MakeDenseBesideMixture(const model::ModelSpec& spec,
                                                         const model::ShardPlan& plan,
                                                         const RankWeights& weights, int layer);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_FEED_FORWARD_H_
