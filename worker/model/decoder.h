// Decoder: the generic transformer. It reads the spec, never an architecture's name.
//
// Encodes one step on the rank's backend: embedding, layers of attention and feed-forward around
// residuals that are fused into the norms, final norm of the requested rows, head. Pre-norm decoder
// as in Llama 2 (https://arxiv.org/abs/2307.09288).
#ifndef TANDEM_WORKER_MODEL_DECODER_H_
#define TANDEM_WORKER_MODEL_DECODER_H_

#include <cstdint>
#include <vector>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/linear.h"
#include "worker/layers/vocabulary.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

// One KV group's view of a batch, in device memory.
struct GroupBatch {
  const int32_t* block_tables = nullptr;  // (S, table_stride)
  uint32_t table_stride = 0;
  const int32_t* slots = nullptr;  // (T)
};

// A step's inputs, in device memory.
struct Batch {
  uint32_t tokens = 0;
  uint32_t num_seqs = 0;
  uint32_t max_query_len = 0;
  uint32_t max_context_len = 0;
  const int32_t* ids = nullptr;            // (T)
  const int32_t* positions = nullptr;      // (T)
  const int32_t* query_offsets = nullptr;  // (S + 1)
  const int32_t* context_lens = nullptr;   // (S)
  std::vector<GroupBatch> groups;
};

class Decoder {
 public:
  // `weights` must outlive the decoder. `inv_freq` is spec.rope.inv_freq in device memory.
  Decoder(const model::ModelSpec& spec, const model::ShardPlan& plan,
          std::vector<uint32_t> vocab_starts, const RankWeights& weights, const float* inv_freq);

  // What the layers leave of every token, (T, hidden) each; the final norm adds them up.
  struct Hidden {
    float* residual = nullptr;
    const float* delta = nullptr;
  };
  // All but the head. `pages` has one entry per layer.
  Hidden Encode(LayerContext& context, const Batch& batch,
                const std::vector<kernels::KvPages>& pages) const;
  // Final norm and head of `count` tokens, which stand in rows[0, count) in device memory. Returns
  // logits (count, vocab) on rank 0 and null elsewhere. A row's logits do not depend on the others,
  // so a step's rows may come in slices.
  float* EncodeHead(LayerContext& context, const Hidden& hidden, const int32_t* rows,
                    uint32_t count) const;

 private:
  struct Layer {
    const float* attn_norm = nullptr;
    QkvParallelLinear qkv;
    const float* q_norm = nullptr;  // null: no per-head norm
    const float* k_norm = nullptr;
    RowParallelLinear attn_output;
    const float* ffn_norm = nullptr;
    MergedColumnParallelLinear gate_up;
    RowParallelLinear down;
    uint32_t group = 0;
    uint32_t window = 0;
  };
  // Activations of one step, shared by all layers.
  struct Activations;

  Layer MakeLayer(const RankWeights& weights, int index) const;
  Activations TakeActivations(Arena& arena, uint32_t tokens) const;
  void EncodeAttention(LayerContext& context, const Batch& batch, const Layer& layer,
                       const kernels::KvPages& pages, const Activations& buffers) const;
  void EncodeHeadNorms(LayerContext& context, const Layer& layer, uint32_t tokens,
                       const Activations& buffers) const;
  void EncodeFeedForward(LayerContext& context, const Batch& batch, const Layer& layer,
                         const Activations& buffers) const;
  void EncodeNorm(LayerContext& context, uint32_t rows, float* residual, const float* add,
                  const float* weight, float* out) const;

  model::ModelSpec spec_;
  model::ShardPlan plan_;
  VocabParallelEmbedding embedding_;
  std::vector<Layer> layers_;
  const float* output_norm_;
  VocabParallelHead head_;
  const float* inv_freq_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_DECODER_H_
