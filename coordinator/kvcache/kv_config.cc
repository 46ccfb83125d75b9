#include "coordinator/kvcache/kv_config.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

absl::Status KvCacheConfig::Validate() const {
  if (block_size == 0) return absl::InvalidArgumentError("block size must be positive, is 0");
  if (groups.empty()) return absl::InvalidArgumentError("the KV cache has no groups");
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint64_t slots = uint64_t{groups[i].num_blocks} * block_size;
    if (slots == 0 || slots > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("KV group ", i, ": ", groups[i].num_blocks, " blocks of ", block_size,
                       " tokens; need 1 to ", std::numeric_limits<int32_t>::max(), " tokens"));
    }
  }
  return absl::OkStatus();
}

std::string KvCacheConfig::Text() const {
  std::string text;
  for (const KvGroup& group : groups) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", group.num_blocks);
    if (&group == &groups.front()) absl::StrAppend(&text, " KV blocks of ", block_size, " tokens");
    if (group.window_tokens > 0) {
      absl::StrAppend(&text, " for a window of ", group.window_tokens, " tokens");
    }
  }
  return text;
}

uint32_t KvCacheConfig::MostBlocks(const KvGroup& group, uint32_t num_tokens,
                                   uint32_t step_tokens) const {
  const uint32_t all = BlocksFor(num_tokens);
  if (group.window_tokens == 0) return all;
  // What a step reads and writes is one run of tokens, which may begin at a block's last token.
  const uint64_t run = uint64_t{group.window_tokens} - 1 + step_tokens;
  return static_cast<uint32_t>(std::min<uint64_t>(all, (run + block_size - 2) / block_size + 1));
}

}  // namespace tandem::coordinator
