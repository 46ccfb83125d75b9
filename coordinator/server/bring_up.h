// BringUp: from options to N loaded workers and an engine core over them; shared by the server and
// by `tandem bench`.
#ifndef TANDEM_COORDINATOR_SERVER_BRING_UP_H_
#define TANDEM_COORDINATOR_SERVER_BRING_UP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/worker_group.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/engine_core.h"
#include "coordinator/server/model_file.h"
#include "coordinator/server/options.h"
#include "coordinator/supervisor/supervisor.h"

namespace tandem::coordinator {

// Workers that are ready for steps. The supervisor outlives the group: members are destroyed in
// reverse order.
struct Workers {
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<WorkerGroup> group;
  EngineConfig engine;  // limits that the workers agreed on
  int threads_per_worker = 0;

  uint32_t max_model_len() const { return engine.scheduler.max_model_len; }
  // The engine over the workers, which takes the group.
  std::unique_ptr<EngineCore> MakeCore();
};

// Errors are one line for the operator. `cancelled` is asked while waiting.
absl::StatusOr<Workers> BringUp(const WorkerOptions& options, const ModelFile& model,
                                const std::function<bool()>& cancelled);

// Each rank's place among the ranks of its host, from the hosts of all ranks: the device that it
// takes.
std::vector<int> LocalRanks(const std::vector<std::string>& host_ids);

// KV bytes of each rank under --num-kv-blocks or --kv-cache-memory; zeros where the workers compute
// them from what their devices have. RESOURCE_EXHAUSTED with both numbers where they exceed
// `available_bytes`, which is the host's and so not asked with cuda.
absl::StatusOr<std::vector<uint64_t>> KvBytesPerRank(const WorkerOptions& options,
                                                     const model::ModelSpec& spec,
                                                     uint32_t max_model_len,
                                                     uint64_t available_bytes);

// "512MiB", "2GiB", "1000000". INVALID_ARGUMENT otherwise.
absl::StatusOr<uint64_t> ParseBytes(const std::string& text);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SERVER_BRING_UP_H_
