// The configuration of a worker's runtime, set by the coordinator; see docs/worker-protocol.md,
// Configure.
#ifndef TANDEM_WORKER_RUNTIME_RUNNER_OPTIONS_H_
#define TANDEM_WORKER_RUNTIME_RUNNER_OPTIONS_H_

#include <cstdint>

#include "common/config/worker_config.h"

namespace tandem::worker {

struct RunnerOptions {
  config::WorkerConfig config{};
  uint64_t kv_cache_bytes = 0;  // of this rank; used when config.cache.num_kv_blocks is 0
  // For tests: every step begins with activations and scratch that are NaN
  // (Backend::PoisonBetweenSteps).
  bool poison = false;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_RUNNER_OPTIONS_H_
