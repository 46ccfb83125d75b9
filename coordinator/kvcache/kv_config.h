// KvCacheConfig: the KV cache as the coordinator sees it. Plain data.
#ifndef TANDEM_COORDINATOR_KVCACHE_KV_CONFIG_H_
#define TANDEM_COORDINATOR_KVCACHE_KV_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem::coordinator {

// Layers that share block tables.
struct KvGroup {
  uint32_t num_blocks = 0;     // the minimum over ranks
  uint32_t window_tokens = 0;  // a token sees itself and the window - 1 tokens before it; 0: all
};

struct KvCacheConfig {
  uint32_t block_size = 16;  // tokens
  bool enable_prefix_cache = true;
  std::optional<uint64_t> prefix_hash_key{};  // without one: drawn at random
  std::vector<KvGroup> groups;

  absl::Status Validate() const;
  // "2048 KV blocks of 16 tokens and 88 for a window of 128 tokens".
  std::string Text() const;

  // The first block that the token at position `num_computed` still reads.
  uint32_t FirstLiveBlock(const KvGroup& group, uint32_t num_computed) const {
    if (group.window_tokens == 0 || num_computed < group.window_tokens) return 0;
    return (num_computed - group.window_tokens + 1) / block_size;
  }
  uint32_t BlocksFor(uint32_t num_tokens) const {
    return num_tokens / block_size + (num_tokens % block_size != 0);
  }
  // The most blocks of `group` that one sequence of `num_tokens` holds at a time when a step adds
  // at most `step_tokens`.
  uint32_t MostBlocks(const KvGroup& group, uint32_t num_tokens, uint32_t step_tokens) const;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_KV_CONFIG_H_
