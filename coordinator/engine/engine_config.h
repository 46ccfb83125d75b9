// EngineConfig: what the engine needs to know, said once at start. Plain data.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
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

  absl::Status Validate() const {
    TANDEM_RETURN_IF_ERROR(scheduler.Validate());
    TANDEM_RETURN_IF_ERROR(kv_cache.Validate());
    if (vocab_size == 0) return absl::InvalidArgumentError("the vocabulary is empty");
    return absl::OkStatus();
  }
};

// Where the coordinator's time goes, summed over steps, in nanoseconds. `wait` is the workers'
// time.
struct EngineStepTimings {
  int64_t steps = 0;
  int64_t schedule_ns = 0;
  int64_t build_ns = 0;
  int64_t submit_ns = 0;  // encode and send
  int64_t wait_ns = 0;
  int64_t apply_ns = 0;

  int64_t coordinator_ns() const { return schedule_ns + build_ns + submit_ns + apply_ns; }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_CONFIG_H_
