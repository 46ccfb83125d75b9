// BringUp: starts N loaded workers and an engine core from a configuration; shared by the server
// and `tandem bench`.
#ifndef TANDEM_COORDINATOR_STARTUP_BRING_UP_H_
#define TANDEM_COORDINATOR_STARTUP_BRING_UP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/server_config.h"
#include "coordinator/cluster/rank_progress.h"
#include "coordinator/cluster/rank_times.h"
#include "coordinator/cluster/worker_group.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/engine_core.h"
#include "coordinator/startup/model_file.h"
#include "coordinator/supervisor/supervisor.h"

namespace tandem::coordinator {

// Workers that are ready for steps. The supervisor outlives the group: members are destroyed in
// reverse order.
struct Workers {
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<WorkerGroup> group;
  config::WorkerConfig config;  // as sent to the workers, with all defaults resolved
  EngineConfig engine;          // limits agreed on by the workers

  int size = 1;  // ranks

  // The part of max_model_len that fits the KV cache for one sequence.
  uint32_t usable_model_len() const;
  // The engine over the workers; it takes ownership of the group.
  std::unique_ptr<EngineCore> MakeCore();
};

// Who learns what the workers do, as long as there is a supervisor; any may be null.
struct BringUpObserver {
  RankProgressFn on_progress = nullptr;  // now and in recoveries
  RankTimes* rank_times = nullptr;
  TraceRecorder* trace = nullptr;
};

// Errors are one line for the operator. `cancelled` is polled while waiting.
absl::StatusOr<Workers> BringUp(const config::ServerConfig& config, const ModelFile& model,
                                const std::function<bool()>& cancelled,
                                BringUpObserver observer = {});

// Each rank's local rank on its host, from the hosts of all ranks: its device index.
std::vector<int> LocalRanks(const std::vector<std::string>& host_ids);
// How many ranks the host of each rank has, likewise.
std::vector<int> RanksOnHosts(const std::vector<std::string>& host_ids);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_BRING_UP_H_
