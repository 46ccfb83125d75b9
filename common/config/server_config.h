// ServerConfig: all settings of a server. Parsed once from the command line.
#ifndef TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_
#define TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "common/config/cluster_config.h"
#include "common/config/scheduling_config.h"
#include "common/config/security_config.h"
#include "common/config/worker_config.h"

namespace tandem::config {

struct ServerConfig {
  WorkerConfig worker{};
  SchedulingConfig scheduling{};
  ClusterConfig cluster{};
  SecurityConfig security{};
  std::string listen = "127.0.0.1:50051";
  std::string http_listen{};
  std::string metrics_listen{};
  bool clamp_max_tokens = false;
  ByteSize max_stream_buffer{1 << 20};
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
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
    visit(metrics_listen,
          {.flag = "--metrics-listen",
           .help = "HOST:PORT of metrics (/metrics), a status page (/) and its numbers "
                   "(/status.json) over HTTP; port 0: any free; without, there is none"});
    visit(clamp_max_tokens,
          {.flag = "--clamp-max-tokens",
           .help = "a request's max_tokens beyond what fits means as many as fit; without, such a "
                   "request is refused"});
    visit(max_stream_buffer,
          {.flag = "--max-stream-buffer",
           .help = "generated text, ids and log-probabilities of a stream that wait for its client "
                   "to read; one that is further behind is ended",
           .least = 4096,
           .most = 1 << 30});
    visit(log_level, {.flag = "--log-level",
                      .help = "lines below this level are not written, by the coordinator"});
    visit(log_format, {.flag = "--log-format",
                       .help = "of the log of this server, its workers and its gateway: lines of "
                               "text, or of JSON"});
    visit(drain_timeout, {.flag = "--drain-timeout",
                          .help = "how long requests in flight have to finish after SIGTERM, "
                                  "SIGINT or SIGHUP; a number is seconds",
                          .least = 0,
                          .most = 86400});
    security.ForEach(visit);
  }
};

// Whether all workers run on one host: they are started here, or share its memory.
bool WorkersShareHost(const ServerConfig& config);

// Sets what other settings imply, before Validate: --speculation mtp loads the draft head.
void Complete(ServerConfig& config);

// Checks the ranges and combinations of all settings, without the model.
absl::Status Validate(const ServerConfig& config);

// docs/configuration.md: a table per section.
std::string ConfigurationPage();

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_SERVER_CONFIG_H_
