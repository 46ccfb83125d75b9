// The attention block of a layer: from the normed hidden state to the residual update. Three kinds,
// by the spec: grouped-query attention, latent attention (MLA), and linear attention with a
// recurrent state (a gated delta net).
#ifndef TANDEM_WORKER_MODEL_ATTENTION_H_
#define TANDEM_WORKER_MODEL_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/norm.h"
#include "worker/model/batch.h"
#include "worker/model/layer_cache.h"
#include "worker/model/rank_adapters.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

// A rope table in device memory.
struct PlacedRope {
  const model::RopeSpec* spec = nullptr;  // null: positions do not rotate
  const float* inv_freq = nullptr;        // (rotary_dims / 2)
};

// The parameters of an attention block; borrowed, must outlive the block.
struct AttentionParts {
  const model::ModelSpec& spec;
  const model::ShardPlan& plan;
  const RankWeights& weights;
  const RankAdapters& adapters;
  PlacedRope rope;
  int layer = 0;
  uint32_t group = 0;   // KV group
  uint32_t window = 0;  // 0: none
  bool chunked = false;
  model::HeadSizes heads{};
  bool has_cache = true;         // else it reads the pages, which another layer writes
  bool values_are_keys = false;  // V is the projection of K
};

class AttentionBlock {
 public:
  explicit AttentionBlock(const AttentionParts& parts) : parts_(parts) {}
  virtual ~AttentionBlock() = default;

  // Rows x (T, hidden) -> out (T, hidden), summed over ranks. Activations are taken from the
  // context's arena and released.
  virtual void Encode(LayerContext& context, const Batch& batch, const LayerCache& cache,
                      const NormedRows& x, float* out) const = 0;

 protected:
  // Rotates q and k, and writes k and v (null with latent pages) to the pages.
  kernels::RopeWriteKvParams WriteParams(const Batch& batch, const kernels::KvPages& pages,
                                         float* q, float* k, const float* v) const;
  // out (T, heads, value_dim).
  kernels::AttentionParams AttendParams(const Batch& batch, const kernels::KvPages& pages,
                                        const float* q, float* out) const;

  AttentionParts parts_;
};

std::unique_ptr<AttentionBlock> MakeGroupedQueryAttention(const AttentionParts& parts);
// Multi-head latent attention by absorption: DeepSeek-V2, arXiv:2405.04434, section 2.1.
std::unique_ptr<AttentionBlock> MakeLatentAttention(const AttentionParts& parts);
std::unique_ptr<AttentionBlock> MakeGatedDeltaNet(const AttentionParts& parts);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_ATTENTION_H_
