// KvCacheConfig: the coordinator's parameters of the KV cache. Plain data.
#ifndef TANDEM_COORDINATOR_KVCACHE_KV_CONFIG_H_
#define TANDEM_COORDINATOR_KVCACHE_KV_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/kv/blocks.h"

namespace tandem::coordinator {

// Layers that share block tables.
struct KvGroup {
  uint32_t num_blocks = 0;     // the minimum over ranks
  uint32_t window_tokens = 0;  // visible to a token, itself included; 0: all
  bool chunked = false;        // it sees its chunk of window_tokens up to itself
};

// Snapshots of recurrent states.
struct SnapshotConfig {
  uint32_t num_snapshots = 0;
  uint32_t interval = 0;  // tokens, a multiple of the block size
};

struct KvCacheConfig {
  uint32_t block_size = 16;  // tokens
  bool enable_prefix_cache = true;
  std::optional<uint64_t> prefix_hash_key{};  // unset: random
  std::vector<KvGroup> groups;
  // Set if the model has recurrent states: a prefix hit needs a snapshot.
  std::optional<SnapshotConfig> snapshots{};

  absl::Status Validate() const;
  // "2048 KV blocks of 16 tokens and 88 for a window of 128 tokens", "2048 KV blocks of 16 tokens
  // and 24 snapshots of recurrent states".
  std::string Text() const;

  // As common/kv/blocks.h, for one of the groups.
  uint32_t FirstLiveBlock(const KvGroup& group, uint32_t num_computed) const {
    return kv::FirstLiveBlock({group.window_tokens, group.chunked}, num_computed, block_size);
  }
  uint32_t BlocksFor(uint32_t num_tokens) const { return kv::BlocksFor(num_tokens, block_size); }
  uint32_t MostBlocks(const KvGroup& group, uint32_t num_tokens, uint32_t step_tokens) const {
    return kv::MostBlocksOfSequence(group.window_tokens, num_tokens, step_tokens, block_size);
  }
  // The longest sequence, prompt and generated tokens, that all groups can hold if a step adds at
  // most `step_tokens`. The last token is sampled but never computed.
  uint64_t LongestSequence(uint32_t step_tokens) const;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_KV_CONFIG_H_
