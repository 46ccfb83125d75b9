// EngineConfig: what the engine needs to know, said once at start. Plain data.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/step/codec.h"
#include "common/step/descriptor.h"
#include "coordinator/kvcache/kv_config.h"
#include "coordinator/scheduler/scheduler_config.h"

namespace tandem::coordinator {

struct EngineConfig {
  SchedulerConfig scheduler;
  KvCacheConfig kv_cache;  // block counts as WorkerGroup::Bring returned them
  uint32_t vocab_size = 0;
  Epoch epoch{1};  // of the worker group
  // Requests that may wait beyond the max_num_seqs that run; more are refused.
  uint32_t max_queued_requests = 1024;
  // For the workers' answer to one step. Somewhat above the workers' own, whose error says more.
  Duration step_timeout = std::chrono::seconds(62);

  // What a StepResult may take, as the workers were told.
  uint64_t max_result_bytes = step::kDefaultMaxResultBytes;
  uint32_t pipeline_depth = step::kPipelineDepth;  // steps in flight; workers have room for as many

  absl::Status Validate() const;
  // The most prompt tokens that one step may score: with the samples of max_num_seqs sequences,
  // each with the most log-probabilities, their rows fit into a result. 0 where not even one does.
  uint32_t MaxScoredTokens() const;
};

// Where the coordinator's time goes, summed over steps, in nanoseconds. `wait` is the workers'
// time.
struct EngineStepTimings {
  int64_t steps = 0;
  int64_t schedule_ns = 0;
  int64_t build_ns = 0;
  int64_t submit_ns = 0;  // serialize and send
  int64_t wait_ns = 0;
  int64_t apply_ns = 0;
  int64_t deliver_ns = 0;

  int64_t coordinator_ns() const {
    return schedule_ns + build_ns + submit_ns + apply_ns + deliver_ns;
  }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_
