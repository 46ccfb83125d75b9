#include "coordinator/scheduler/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

namespace {

std::string Length(uint64_t prompt_tokens, uint64_t max_tokens) {
  const std::string prompt = absl::StrCat("prompt of ", prompt_tokens, " tokens");
  return max_tokens == 0 ? prompt : absl::StrCat(prompt, " and max_tokens ", max_tokens);
}

}  // namespace

uint64_t Admission::MostPrompt(uint64_t max_tokens) const {
  const uint64_t most_cached = kv_cache_.LongestSequence(scheduler_.MostStepTokens()) - 1;
  const uint64_t most = scheduler_.max_model_len;
  return std::min(max_tokens == 0 ? most : most - 1, most_cached);
}

std::string Admission::Allowed(uint64_t prompt_tokens, uint64_t max_tokens) const {
  const uint64_t most = std::min<uint64_t>(scheduler_.max_model_len,
                                           kv_cache_.LongestSequence(scheduler_.MostStepTokens()));
  if (max_tokens == 0 || prompt_tokens >= most) {
    return absl::StrCat("; a prompt may have at most ", MostPrompt(max_tokens), " tokens");
  }
  return absl::StrCat("; with this prompt max_tokens may be at most ", most - prompt_tokens);
}

absl::Status Admission::Check(uint64_t prompt_tokens, uint64_t max_tokens) const {
  const uint64_t limit = scheduler_.max_model_len;
  if (prompt_tokens > limit || max_tokens > limit - prompt_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat(Length(prompt_tokens, max_tokens), max_tokens == 0 ? " exceeds" : " exceed",
                     " the context of ", limit, " tokens (--max-model-len)",
                     Allowed(prompt_tokens, max_tokens)));
  }
  // The last token, if any is sampled, is never computed.
  const auto computed =
      static_cast<uint32_t>(prompt_tokens + max_tokens - (max_tokens > 0 ? 1 : 0));
  for (const KvGroup& group : kv_cache_.groups) {
    const uint32_t needed = kv_cache_.MostBlocks(group, computed, scheduler_.MostStepTokens());
    if (needed > group.num_blocks) {
      return absl::InvalidArgumentError(absl::StrCat(
          Length(prompt_tokens, max_tokens), max_tokens == 0 ? " needs " : " need ", needed,
          " KV blocks of ", kv_cache_.block_size, " tokens, the cache has ", group.num_blocks,
          group.window_tokens == 0
              ? ""
              : absl::StrCat(" for layers with a window of ", group.window_tokens, " tokens"),
          Allowed(prompt_tokens, max_tokens)));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
