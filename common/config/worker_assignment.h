// WorkerAssignment: per-rank parameters of an epoch, besides the configuration.
#ifndef TANDEM_COMMON_CONFIG_WORKER_ASSIGNMENT_H_
#define TANDEM_COMMON_CONFIG_WORKER_ASSIGNMENT_H_

#include <cstdint>
#include <string>

#include "common/base/cpu_set.h"
#include "common/base/ids.h"

namespace tandem::config {

struct WorkerAssignment {
  Epoch epoch{};
  int32_t rank = 0;
  int32_t size = 1;
  uint64_t model_fingerprint = 0;      // of the file that the coordinator read; 0: not compared
  uint64_t draft_fingerprint = 0;      // likewise, of the draft model's
  uint64_t adapters_fingerprint = 0;   // likewise, of all adapters in order
  int32_t device_index = 0;            // among the devices visible to the worker
  int32_t ranks_on_host = 1;           // of the worker's host, this one included
  uint64_t kv_cache_bytes = 0;         // this rank's; 0: by its device's memory, or num_kv_blocks
  CpuSet cpus{};                       // that its threads run on; empty: any
  std::string step_channel_address{};  // of the shared-memory channel; empty for grpc

  bool one_host() const { return ranks_on_host == size; }
  // Whether weights loaded for `other` can be kept for this one.
  bool SameWeights(const WorkerAssignment& other) const {
    return rank == other.rank && size == other.size &&
           model_fingerprint == other.model_fingerprint &&
           draft_fingerprint == other.draft_fingerprint &&
           adapters_fingerprint == other.adapters_fingerprint &&
           device_index == other.device_index && cpus == other.cpus;
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_WORKER_ASSIGNMENT_H_
