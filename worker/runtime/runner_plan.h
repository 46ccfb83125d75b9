// RunnerPlan: how a rank's memory is divided. Sizes are computed, never found by trial and error.
// Plain data.
#ifndef TANDEM_WORKER_RUNTIME_RUNNER_PLAN_H_
#define TANDEM_WORKER_RUNTIME_RUNNER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/kv/kv_shape.h"

namespace tandem::worker {

struct RunnerPlan {
  uint64_t weights_bytes = 0;
  uint64_t activation_bytes = 0;  // of the largest step
  uint64_t workspace_bytes = 0;   // kernels' scratch
  uint64_t buffers_bytes = 0;     // a step's inputs and results
  kv::KvShape kv;
  uint64_t num_kv_blocks = 0;  // of full-attention groups; see KvShape

  uint64_t kv_bytes() const { return kv.Bytes(num_kv_blocks); }
  // All but the KV cache.
  uint64_t fixed_bytes() const {
    return weights_bytes + activation_bytes + workspace_bytes + buffers_bytes;
  }
  uint64_t total_bytes() const { return fixed_bytes() + kv_bytes(); }
  // For the log, a line per item.
  std::vector<std::string> Lines() const;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_RUNNER_PLAN_H_
