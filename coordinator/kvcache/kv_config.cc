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
  if (snapshots.has_value() &&
      (snapshots->interval == 0 || snapshots->interval % block_size != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("a snapshot every ", snapshots->interval,
                                                   " tokens: need a multiple of the block size, ",
                                                   block_size));
  }
  return absl::OkStatus();
}

std::string KvCacheConfig::Text() const {
  std::string text;
  for (const KvGroup& group : groups) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", group.num_blocks);
    if (&group == &groups.front()) absl::StrAppend(&text, " KV blocks of ", block_size, " tokens");
    if (group.window_tokens > 0) {
      absl::StrAppend(&text, group.chunked ? " for chunks of " : " for a window of ",
                      group.window_tokens, " tokens");
    }
  }
  if (snapshots.has_value()) {
    absl::StrAppend(&text, " and ", snapshots->num_snapshots,
                    snapshots->num_snapshots == 1 ? " snapshot" : " snapshots",
                    " of recurrent states");
  }
  return text;
}

uint64_t KvCacheConfig::LongestSequence(uint32_t step_tokens) const {
  uint64_t computed = std::numeric_limits<uint32_t>::max();
  for (const KvGroup& group : groups) {
    computed = std::min(computed, kv::MostTokensOfSequence(group.window_tokens, group.num_blocks,
                                                           step_tokens, block_size));
  }
  return computed + 1;
}

}  // namespace tandem::coordinator
