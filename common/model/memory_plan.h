// How a rank's memory is divided: weights, activations, and KV pages from what was given to them.
// Sizes are computed, never found by trial and error. Plain data, thread-safe.
#ifndef TANDEM_COMMON_MODEL_MEMORY_PLAN_H_
#define TANDEM_COMMON_MODEL_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "common/tensor/type.h"

namespace tandem::model {

// Bytes that one token takes in the cache of one rank: K and V rows of every layer of the group, or
// of all groups. REQUIRES: CheckKvCacheType of both is OK.
uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, const KvGroupSpec& group,
                         tensor::Type kv_type);
uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, tensor::Type kv_type);

// What a rank knows before it divides. All bytes are of this rank.
struct MemoryRequest {
  uint64_t weights_bytes = 0;
  uint64_t activation_bytes = 0;    // peak of a step, from the counting pass
  uint64_t kv_bytes = 0;            // at most this much for KV pages
  uint64_t kv_bytes_per_token = 0;  // of all groups
  uint32_t block_tokens = 0;
  std::optional<uint64_t> num_blocks;       // asked for by number: `kv_bytes` is then not used
  std::optional<uint64_t> available_bytes;  // refuse a plan that needs more
};

struct MemoryPlan {
  uint64_t weights_bytes = 0;
  uint64_t activation_bytes = 0;
  uint64_t bytes_per_block = 0;  // of all groups: each group has `num_blocks` blocks of its own
  uint64_t num_blocks = 0;
  uint32_t block_tokens = 0;
  bool operator==(const MemoryPlan&) const = default;

  uint64_t kv_bytes() const { return num_blocks * bytes_per_block; }
  uint64_t total_bytes() const { return weights_bytes + activation_bytes + kv_bytes(); }
  // One line per item, each ending in a newline.
  std::string Text() const;
};

// INVALID_ARGUMENT for sizes of zero or sums beyond 2^63, RESOURCE_EXHAUSTED where not one block
// fits or more is needed than is available; always with both numbers.
absl::StatusOr<MemoryPlan> MakeMemoryPlan(const MemoryRequest& request);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_MEMORY_PLAN_H_
