// What a worker's runtime is configured with. The coordinator sets it; see docs/worker-protocol.md,
// Configure.
#ifndef TANDEM_WORKER_RUNTIME_RUNNER_OPTIONS_H_
#define TANDEM_WORKER_RUNTIME_RUNNER_OPTIONS_H_

#include <cstdint>

#include "common/tensor/type.h"

namespace tandem::worker {

struct RunnerOptions {
  tensor::Type kv_cache_type = tensor::Type::kF16;  // as model::ParseKvCacheType gives it
  uint32_t block_size = 16;                         // tokens per KV block
  uint32_t max_num_seqs = 1;
  uint32_t max_num_batched_tokens = 512;
  uint32_t max_model_len = 0;   // > 0
  uint64_t kv_cache_bytes = 0;  // of this rank; used when num_kv_blocks is 0
  uint32_t num_kv_blocks = 0;
  // The part of a device's memory that this rank may take; what the rest of the plan leaves of it
  // goes to KV blocks, where neither of the two above is given.
  double gpu_memory_utilization = 0.9;
  uint64_t max_result_bytes = 4 << 20;  // the largest StepResult that the step channel carries
  bool enforce_eager = false;           // no decode graphs, also where the backend has graphs
  bool strict = true;  // what blocks between ENCODE and WAIT fails the step; else it is logged
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_RUNNER_OPTIONS_H_
