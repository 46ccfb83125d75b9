// WorkerConfig: the configuration of a worker, the same on all ranks. Per-rank values are in
// WorkerAssignment.
#ifndef TANDEM_COMMON_CONFIG_WORKER_CONFIG_H_
#define TANDEM_COMMON_CONFIG_WORKER_CONFIG_H_

#include <utility>

#include "common/base/log.h"
#include "common/config/cache_config.h"
#include "common/config/device_config.h"
#include "common/config/limits_config.h"
#include "common/config/model_config.h"
#include "common/config/transport_config.h"

namespace tandem::config {

template <>
struct EnumNames<LogLevel> {
  static constexpr std::pair<LogLevel, const char*> kNames[] = {{LogLevel::kDebug, "debug"},
                                                                {LogLevel::kInfo, "info"},
                                                                {LogLevel::kWarning, "warning"},
                                                                {LogLevel::kError, "error"}};
};

template <>
struct EnumNames<LogFormat> {
  static constexpr std::pair<LogFormat, const char*> kNames[] = {{LogFormat::kText, "text"},
                                                                 {LogFormat::kJson, "json"}};
};

struct WorkerConfig {
  ModelConfig model{};
  DeviceConfig device{};
  CacheConfig cache{};
  LimitsConfig limits{};
  TransportConfig transport{};
  LogLevel log_level = LogLevel::kInfo;

  void ForEach(FieldList& visit) {
    model.ForEach(visit);
    device.ForEach(visit);
    cache.ForEach(visit);
    limits.ForEach(visit);
    transport.ForEach(visit);
    visit.BeginSection("Log");
    visit(log_level, {.flag = "--worker-log-level",
                      .help = "lines below this level are not written, by workers"});
  }
};

// Whether a worker that has loaded for `a` must reload the weights for `b`.
bool NeedsReload(const WorkerConfig& a, const WorkerConfig& b);

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_WORKER_CONFIG_H_
