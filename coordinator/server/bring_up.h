// BringUp: from a configuration to N loaded workers and an engine core over them; shared by the
// server and by `tandem bench`.
#ifndef TANDEM_COORDINATOR_SERVER_BRING_UP_H_
#define TANDEM_COORDINATOR_SERVER_BRING_UP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/server_config.h"
#include "coordinator/cluster/worker_group.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/engine_core.h"
#include "coordinator/server/model_file.h"
#include "coordinator/supervisor/supervisor.h"

namespace tandem::coordinator {

// Workers that are ready for steps. The supervisor outlives the group: members are destroyed in
// reverse order.
struct Workers {
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<WorkerGroup> group;
  config::WorkerConfig config;  // as the workers were told: nothing is left to default
  EngineConfig engine;          // limits that the workers agreed on

  int size = 1;  // ranks

  // What one sequence can use of max_model_len: as much as the KV cache holds.
  uint32_t usable_model_len() const;
  // The engine over the workers, which takes the group.
  std::unique_ptr<EngineCore> MakeCore();
};

// Errors are one line for the operator. `cancelled` is asked while waiting.
absl::StatusOr<Workers> BringUp(const config::ServerConfig& config, const ModelFile& model,
                                const std::function<bool()>& cancelled);

// Each rank's place among the ranks of its host, from the hosts of all ranks: the device that it
// takes.
std::vector<int> LocalRanks(const std::vector<std::string>& host_ids);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SERVER_BRING_UP_H_
