// WorkerConfig: everything that a worker is configured with, the same on all ranks. What differs
// between ranks is WorkerAssignment.
#ifndef TANDEM_COMMON_CONFIG_WORKER_CONFIG_H_
#define TANDEM_COMMON_CONFIG_WORKER_CONFIG_H_

#include "common/config/cache_config.h"
#include "common/config/device_config.h"
#include "common/config/limits_config.h"
#include "common/config/model_config.h"
#include "common/config/transport_config.h"

namespace tandem::config {

struct WorkerConfig {
  ModelConfig model{};
  DeviceConfig device{};
  CacheConfig cache{};
  LimitsConfig limits{};
  TransportConfig transport{};

  void ForEach(FieldList& visit) {
    model.ForEach(visit);
    device.ForEach(visit);
    cache.ForEach(visit);
    limits.ForEach(visit);
    transport.ForEach(visit);
  }
};

// Whether a worker that has loaded for `a` must load the weights anew for `b`.
bool NeedsReload(const WorkerConfig& a, const WorkerConfig& b);

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_WORKER_CONFIG_H_
