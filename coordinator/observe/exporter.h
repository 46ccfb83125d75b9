// The server's numbers in Prometheus' data model. Each number has one declaration: in the ForEach
// of the component that counts it, or here if it follows from others.
#ifndef TANDEM_COORDINATOR_OBSERVE_EXPORTER_H_
#define TANDEM_COORDINATOR_OBSERVE_EXPORTER_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/cluster/rank_times.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/observe/memory_use.h"
#include "coordinator/observe/request_metrics.h"
#include "coordinator/observe/server_state.h"

namespace tandem::coordinator {

// What is exported, as of one moment.
struct Observation {
  struct Engine {
    EngineStats stats;
    EngineStepTimings timings;
    uint32_t block_size = 0;  // tokens of a KV block
  };

  ServerView state;
  MemoryUse memory;
  std::vector<RankTimes::Sums> rank_times;
  std::optional<bool> http_gateway_up{};  // unset: the server starts none
  std::optional<Engine> engine{};         // none before the server serves
};

// All metrics, in the order of their declaration; all times in seconds.
std::vector<prometheus::MetricFamily> MakeFamilies(const Observation& observed,
                                                   const RequestMetrics& requests);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_EXPORTER_H_
