// EngineConfig: the engine's parameters, fixed at start. Plain data.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/config/transport_config.h"
#include "common/step/descriptor.h"
#include "coordinator/kvcache/kv_config.h"
#include "coordinator/scheduler/scheduler_config.h"

namespace tandem::coordinator {

struct EngineConfig {
  SchedulerConfig scheduler;
  KvCacheConfig kv_cache;  // block counts from the workers (minimum over ranks)
  uint32_t vocab_size = 0;
  uint32_t hidden_size = 0;   // 0: no embeddings
  uint32_t num_adapters = 0;  // that requests may name
  Epoch epoch{1};             // of the worker group
  // Requests that may wait besides the max_num_seqs running; more are rejected.
  uint32_t max_queued_requests = 1024;
  // Prompt tokens of requests without a token yet; a request that would exceed them is rejected,
  // unless it is the only one.
  uint64_t max_queued_tokens = 1 << 20;
  // What one number of a request's priority is worth in time of waiting.
  Duration priority_ageing = std::chrono::seconds(10);
  // Timeout of one step's result. Somewhat above the workers' own, whose error has more detail.
  Duration step_timeout = std::chrono::seconds(62);

  // The largest StepResult, as configured on the workers.
  uint64_t max_result_bytes = config::TransportConfig().max_result_bytes.bytes;
  // Tokens that are guessed for a sequence and computed in one step; 0: no speculation. A recurrent
  // state goes back to before wrong guesses by a snapshot, so it needs some.
  uint32_t max_draft_tokens = 0;
  bool workers_guess = false;                      // by a draft model or the draft head
  uint32_t pipeline_depth = step::kPipelineDepth;  // steps in flight; 1: no overlap
  // While steps take the workers this long or longer, one is sent when none is in flight: what
  // arrives during a step is then in the next one and not in the one after it
  // (docs/decisions/0036-long-steps-do-not-overlap.md).
  Duration overlap_below = Duration::max();

  absl::Status Validate() const;
  // The most prompt tokens that one step may score such that, with all samples of a
  // step and the most log-probabilities each, their rows fit into a result. 0 if not even one
  // fits.
  uint32_t MaxScoredTokens() const;
  // The most sequences whose states one step may pool: at most half of what samples leave of a
  // result.
  uint32_t MaxPools() const;
};

// The coordinator's time by phase, summed over steps, in nanoseconds. `wait` is for the workers.
struct EngineStepTimings {
  int64_t steps = 0;
  int64_t schedule_ns = 0;
  int64_t build_ns = 0;
  int64_t submit_ns = 0;  // serialize and send
  int64_t wait_ns = 0;
  int64_t apply_ns = 0;
  int64_t deliver_ns = 0;
  int64_t idle_ns = 0;  // rank 0's wait for steps that decode

  int64_t coordinator_ns() const {
    return schedule_ns + build_ns + submit_ns + apply_ns + deliver_ns;
  }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_
