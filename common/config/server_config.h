// ServerConfig: all settings of a server. Parsed once from the command line.
#ifndef TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_
#define TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_

#include <chrono>
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
  std::string http_listen{};
  bool clamp_max_tokens = false;
  LogLevel log_level = LogLevel::kInfo;
  Duration drain_timeout = std::chrono::seconds(30);

  void ForEach(FieldList& visit) {
    worker.ForEach(visit);
    scheduling.ForEach(visit);
    cluster.ForEach(visit);
    visit.BeginSection("API");
    visit(listen,
          {.flag = "--listen", .help = "HOST:PORT of the public gRPC API; port 0: any free"});
    visit(http_listen, {.flag = "--http-listen",
                        .help = "HOST:PORT of OpenAI's HTTP API, by the tandem_gateway beside this "
                                "program; without, there is none"});
    visit(clamp_max_tokens,
          {.flag = "--clamp-max-tokens",
           .help = "a request's max_tokens beyond what fits means as many as fit; without, such a "
                   "request is refused"});
    visit(log_level, {.flag = "--log-level",
                      .help = "lines below this level are not written, by the coordinator"});
    visit(drain_timeout, {.flag = "--drain-timeout",
                          .help = "how long requests in flight have to finish after SIGTERM, "
                                  "SIGINT or SIGHUP; a number is seconds",
                          .least = 0,
                          .most = 86400});
  }
};

// Checks the ranges and combinations of all settings, without the model.
absl::Status Validate(const ServerConfig& config);

// docs/configuration.md: a table per section.
std::string ConfigurationPage();

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_
