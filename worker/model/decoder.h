// Decoder: the generic transformer. It reads the spec, never an architecture's name.
//
// Encodes one step on the rank's backend: embedding, layers of attention and feed-forward around
// residuals that are fused into the norms, final norm of the requested rows, head. Pre-norm decoder
// as in Llama 2 (https://arxiv.org/abs/2307.09288); with post-norms as in Gemma 2
// (https://arxiv.org/abs/2408.00118).
#ifndef TANDEM_WORKER_MODEL_DECODER_H_
#define TANDEM_WORKER_MODEL_DECODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/norm.h"
#include "worker/layers/vocabulary.h"
#include "worker/model/attention.h"
#include "worker/model/batch.h"
#include "worker/model/feed_forward.h"
#include "worker/model/layer_inputs.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

class Decoder {
 public:
  // Borrows everything: `spec`, `plan` and `weights` must outlive the decoder. The frequencies are
  // those of spec.rope and spec.window_rope, in device memory (null if there are none).
  Decoder(const model::ModelSpec& spec, const model::ShardPlan& plan,
          std::vector<uint32_t> vocab_starts, const RankWeights& weights, const float* inv_freq,
          const float* window_inv_freq);

  // The layers' output for every token, (T, hidden) each: the next norm adds delta, if there is
  // one, to the residual.
  struct Hidden {
    float* residual = nullptr;
    float* delta = nullptr;
  };
  // All but the head. `pages` and `states` have one entry per layer.
  Hidden Encode(LayerContext& context, const Batch& batch,
                const std::vector<kernels::KvPages>& pages,
                const std::vector<LayerStates>& states) const;
  // Final norm and head of `count` tokens, given by rows[0, count) in device memory. Returns logits
  // (count, vocab) on rank 0 and null on other ranks. A row's logits do not depend on the others,
  // so a step's rows may be computed in slices.
  float* EncodeHead(LayerContext& context, const Hidden& hidden, const int32_t* rows,
                    uint32_t count) const;

 private:
  struct Layer {
    Norm attn_norm;
    std::unique_ptr<AttentionBlock> attention;
    Norm attn_post_norm;  // null without post-norms
    Norm ffn_norm;
    std::unique_ptr<FeedForwardBlock> feed_forward;
    Norm ffn_post_norm;
  };
  Norm MakeNorm(const RankWeights& weights, int layer, model::Role weight,
                std::optional<model::Role> bias = std::nullopt) const;
  Layer MakeLayer(const RankWeights& weights, const AttentionParts& parts) const;
  void EncodeEmbedding(LayerContext& context, const Batch& batch, const Hidden& hidden) const;
  std::unique_ptr<FeedForwardBlock> MakeFeedForward(const RankWeights& weights, int layer) const;
  void EncodeLayer(LayerContext& context, const Batch& batch, const Layer& layer,
                   const LayerCache& cache, const float* add, float* normed,
                   const Hidden& hidden) const;
  // What follows a layer's feed-forward block: its own input, and the scale of its output. Returns
  // what the next norm adds: hidden.delta, or null where it is part of the residual already.
  float* EncodeLayerEnd(LayerContext& context, uint32_t layer, uint32_t tokens,
                        const float* layer_inputs, const Hidden& hidden) const;

  const model::ModelSpec& spec_;
  const model::ShardPlan& plan_;
  VocabParallelEmbedding embedding_;
  kernels::Weight positions_;  // of learned positions
  std::optional<LayerInputs> layer_inputs_;
  std::vector<Layer> layers_;
  Norm output_norm_;
  VocabParallelHead head_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_DECODER_H_
