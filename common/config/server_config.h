// ServerConfig: everything that a server is started with, in the field's usual words. Parsed once
// at the command line.
#ifndef TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_
#define TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "common/config/cluster_config.h"
#include "common/config/scheduling_config.h"
#include "common/config/worker_config.h"

namespace tandem::config {

struct ServerConfig {
  WorkerConfig worker{};
  SchedulingConfig scheduling{};
  ClusterConfig cluster{};
  std::string listen = "127.0.0.1:50051";

  void ForEach(FieldList& visit) {
    worker.ForEach(visit);
    scheduling.ForEach(visit);
    cluster.ForEach(visit);
    visit.BeginSection("API");
    visit(listen,
          {.flag = "--listen", .help = "HOST:PORT of the public gRPC API; port 0: any free"});
  }
};

// Ranges of all settings, and what two of them rule out together; no model is needed to see it.
absl::Status Validate(const ServerConfig& config);

// docs/configuration.md: a table per part.
std::string ConfigurationPage();

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_
