// KvBytesPerRank: host memory of each rank's KV cache.
#ifndef TANDEM_COORDINATOR_STARTUP_KV_BUDGET_H_
#define TANDEM_COORDINATOR_STARTUP_KV_BUDGET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/worker_config.h"
#include "common/model/adapter.h"
#include "common/model/spec.h"

namespace tandem::coordinator {

// What the models take memory by.
struct ModelSizes {
  const model::ModelSpec& spec;
  const model::ModelSpec* draft = nullptr;  // the draft model's; null: there is none
  uint64_t bytes = 0;                       // of the files of both
  std::vector<const model::Adapter*> adapters{};
};

// KV bytes of each of `size` ranks under --num-kv-blocks or --kv-cache-memory; zeros if the workers
// compute them from their devices' memory. RESOURCE_EXHAUSTED with both numbers if they exceed
// `available_bytes`, less what the weights take of it (`model.bytes`, if workers copy them),
// adapters and the recurrent states of --max-num-seqs sequences, or if these do not fit; it is the
// host's and so ignored with cuda. REQUIRES: max_model_len is resolved.
absl::StatusOr<std::vector<uint64_t>> KvBytesPerRank(const config::WorkerConfig& config, int size,
                                                     const ModelSizes& model,
                                                     uint64_t available_bytes);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_KV_BUDGET_H_
