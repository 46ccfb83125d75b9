// DecoderLayer: one layer of the transformer, attention and feed-forward around residuals that are
// fused into the norms.
#ifndef TANDEM_WORKER_MODEL_DECODER_LAYER_H_
#define TANDEM_WORKER_MODEL_DECODER_LAYER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "worker/layers/context.h"
#include "worker/layers/norm.h"
#include "worker/model/attention.h"
#include "worker/model/batch.h"
#include "worker/model/feed_forward.h"
#include "worker/model/layer_cache.h"
#include "worker/model/rank_adapters.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

// What a rank's layers are made of. Borrowed: must outlive them.
struct ModelParts {
  const model::ModelSpec& spec;
  const model::ShardPlan& plan;
  const RankWeights& weights;
  const RankAdapters& adapters;
  // Of spec.rope and spec.window_rope, in device memory; null if there are none.
  const float* inv_freq = nullptr;
  const float* window_inv_freq = nullptr;
};

// A norm of whole rows; of no layer if `layer` is -1.
Norm MakeNorm(const ModelParts& parts, int layer, model::Role weight,
              std::optional<model::Role> bias = std::nullopt);

// A layer's output for every token, (T, hidden) each: the next norm adds delta, if there is one, to
// the residual.
struct Hidden {
  float* residual = nullptr;
  float* delta = nullptr;
  float* spare = nullptr;  // (T, hidden) of room that no layer needs any more; may be null
};

class DecoderLayer {
 public:
  DecoderLayer(const ModelParts& parts, uint32_t layer);

  // From the residual, to which `add` is added first if there is one, to residual and delta.
  // `normed` is room for (T, hidden).
  void Encode(LayerContext& context, const Batch& batch, const LayerCache& cache, const float* add,
              float* normed, const Hidden& hidden) const;

 private:
  Norm attn_norm_;
  std::unique_ptr<AttentionBlock> attention_;
  Norm attn_post_norm_;  // null without post-norms
  Norm ffn_norm_;
  std::unique_ptr<FeedForwardBlock> feed_forward_;
  Norm ffn_post_norm_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_DECODER_LAYER_H_
