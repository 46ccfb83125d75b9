// SchedulerConfig: limits of a step, and scheduling priorities. Plain data.
#ifndef TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_CONFIG_H_
#define TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_CONFIG_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/config/scheduling_config.h"

namespace tandem::coordinator {

using config::SchedulingPolicy;

struct SchedulerConfig {
  uint32_t max_num_seqs = 32;
  uint32_t max_num_batched_tokens =
      512;                              // of one step, prefill and decode together; >= max_num_seqs
  uint32_t chunked_prefill_size = 512;  // the most prefill tokens of one sequence in one step
  uint32_t max_model_len = 0;           // prompt and generated tokens
  uint32_t max_scored_tokens = UINT32_MAX;  // of one step, of sequences whose prompt is scored
  uint32_t max_pools = 0;                   // sequences of one step whose states are pooled
  // Strikes after which a sequence is suspected of ending its workers, and computed alone.
  uint32_t max_strikes = UINT32_MAX;
  // How many later sequences may be admitted before one that does not fit yet; none before one that
  // was preempted.
  uint32_t max_queue_skips = 0;
  // Rows of a step with drafts, those of all sequences together: a step of so few takes about as
  // long as one of a single row. 0: no drafts.
  uint32_t max_draft_rows = 0;
  // While a sequence decodes, a step has so much prefill that its predicted time is at most this,
  // or a block of it; 0: as much as the other limits allow.
  Duration target_itl{};
  SchedulingPolicy policy = SchedulingPolicy::kDecodeFirst;

  // INVALID_ARGUMENT in terms of the command line's flags.
  absl::Status Validate() const;
  // The most tokens that one step draws.
  uint32_t MostSamples() const;
  // The most rows of a step with drafts: max_draft_rows, but each of them draws a token.
  uint32_t MostDraftRows() const { return std::min(max_draft_rows, MostSamples()); }
  // The most tokens that one step adds to one sequence.
  uint32_t MostStepTokens() const { return std::min(chunked_prefill_size, max_num_batched_tokens); }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_CONFIG_H_
