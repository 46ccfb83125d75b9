// LimitsConfig: limits of one step.
#ifndef TANDEM_COMMON_CONFIG_LIMITS_CONFIG_H_
#define TANDEM_COMMON_CONFIG_LIMITS_CONFIG_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/config/field.h"

namespace tandem::config {

struct LimitsConfig {
  uint32_t max_num_seqs = 32;
  uint32_t max_num_batched_tokens = 0;

  void ForEach(FieldList& visit) {
    visit.BeginSection("Limits of a step");
    visit(
        max_num_seqs,
        {.flag = "--max-num-seqs", .help = "sequences that run at once", .least = 1, .most = 4096});
    visit(max_num_batched_tokens,
          {.flag = "--max-num-batched-tokens",
           .help = "tokens of one step, prefill chunks and decodes together (0: 256 for dense "
                   "models on the CPU, else 512; at least twice --max-num-seqs)",
           .least = 0,
           .most = 1 << 20});
  }
};

// INVALID_ARGUMENT if a step cannot hold one token of every running sequence. 0 tokens stand for as
// many as are needed.
absl::Status CheckTokenBudget(uint32_t max_num_batched_tokens, uint32_t max_num_seqs);

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_LIMITS_CONFIG_H_
