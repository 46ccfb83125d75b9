// RunnerPlan: how a rank's memory is divided. Sizes are computed, not found by trial and error.
// Plain data.
#ifndef TANDEM_WORKER_RUNTIME_RUNNER_PLAN_H_
#define TANDEM_WORKER_RUNTIME_RUNNER_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/kv/kv_shape.h"
#include "worker/runtime/runner_options.h"

namespace tandem::worker {

// The part of the device's memory that a rank may use. The rest is for unplanned use: kernels'
// code, communicators' buffers, and what allocations are rounded up to.
struct DeviceBudget {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // before weights were loaded
  double utilization = 0;   // of total_bytes

  // That part of the total, and of what was free not the last: 1 - utilization of the total stays
  // free, or a tenth, so that two servers with half of a device each have room.
  uint64_t limit_bytes() const;
};

struct RunnerPlan {
  uint64_t weights_bytes = 0;
  uint64_t activation_bytes = 0;  // of the largest step
  uint64_t workspace_bytes = 0;   // kernels' scratch
  uint64_t buffers_bytes = 0;     // a step's inputs and results
  uint64_t table_bytes = 0;       // block tables
  uint64_t graph_bytes = 0;       // decode graphs, estimated
  uint64_t state_bytes = 0;       // recurrent states
  uint32_t state_slots = 0;       // sequences that have one
  kv::KvShape kv;
  uint64_t num_kv_blocks = 0;            // of full-attention groups; see KvShape
  std::optional<DeviceBudget> device{};  // none: host memory (CheckHostMemory)

  uint64_t kv_bytes() const { return kv.Bytes(num_kv_blocks); }
  // All except the KV cache.
  uint64_t fixed_bytes() const {
    return weights_bytes + activation_bytes + workspace_bytes + buffers_bytes + table_bytes +
           graph_bytes + state_bytes;
  }
  uint64_t total_bytes() const { return fixed_bytes() + kv_bytes(); }
  // For the log, a line per item.
  std::vector<std::string> Lines() const;
};

// Sets plan.num_kv_blocks, after all other sizes: the configured number, or the rest of the
// device's budget. RESOURCE_EXHAUSTED, with every number and what to change, if the plan exceeds
// the device's budget or has no block.
absl::Status SizeKvCache(const RunnerOptions& options, RunnerPlan& plan);

// RESOURCE_EXHAUSTED, with every number and what to change, if `ranks` CPU ranks like this one need
// more than `available_bytes` of their host. Weights that are not copied are not counted: most are
// pages of the file.
absl::Status CheckHostMemory(const RunnerOptions& options, const RunnerPlan& plan, int ranks,
                             uint64_t available_bytes);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_RUNNER_PLAN_H_
