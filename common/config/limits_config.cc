#include "common/config/limits_config.h"

#include "absl/strings/str_cat.h"

namespace tandem::config {

absl::Status CheckTokenBudget(uint32_t max_num_batched_tokens, uint32_t max_num_seqs) {
  if (max_num_batched_tokens == 0 || max_num_batched_tokens >= max_num_seqs) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--max-num-batched-tokens ", max_num_batched_tokens, " is below --max-num-seqs ",
                   max_num_seqs, ": every running sequence needs a token of each step"));
}

}  // namespace tandem::config
