// ClusterConfig: the number of workers and how they are started. Only for the coordinator.
#ifndef TANDEM_COMMON_CONFIG_CLUSTER_CONFIG_H_
#define TANDEM_COMMON_CONFIG_CLUSTER_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "common/config/field.h"
#include "common/model/shard.h"

namespace tandem::config {

enum class WorkerSource { kSpawn, kExternal };
template <>
struct EnumNames<WorkerSource> {
  static constexpr std::pair<WorkerSource, const char*> kNames[] = {
      {WorkerSource::kSpawn, "spawn"}, {WorkerSource::kExternal, "external"}};
};

struct ClusterConfig {
  int32_t tensor_parallel_size = 1;
  WorkerSource workers = WorkerSource::kSpawn;
  std::string worker_binary{};
  std::string worker_listen = "127.0.0.1:0";
  std::string worker_token_file{};
  std::string worker_tls_cert{};
  std::string worker_tls_key{};
  std::string worker_tls_ca{};
  std::string worker_cpus{};
  Duration load_timeout = std::chrono::minutes(10);
  int32_t max_restarts = 5;
  Duration restart_window = std::chrono::minutes(10);

  void ForEach(FieldList& visit) {
    visit.BeginSection("Workers");
    visit(tensor_parallel_size,
          {.flag = "--tensor-parallel-size,--tp",
           .help = "worker processes that share the model; divides the query heads",
           .least = 1,
           .most = model::kMaxRanks});
    visit(workers,
          {.flag = "--workers", .help = "spawn: start them here; external: wait for them"});
    visit(worker_binary, {.flag = "--worker-binary",
                          .help = "path of the worker program (default: tandem_worker, or "
                                  "tandem_worker_cuda, beside this program)"});
    visit(worker_listen, {.flag = "--worker-listen",
                          .help = "HOST:PORT where external workers dial in; beyond loopback "
                                  "it needs TLS"});
    visit(worker_token_file, {.flag = "--worker-token-file",
                              .help = "file with the token that external workers must show"});
    visit(worker_tls_cert,
          {.flag = "--worker-tls-cert",
           .help = "PEM file with the certificate chain of the worker port, of the name "
                   "tandem-coordinator; a change of these three files is noticed"});
    visit(worker_tls_key, {.flag = "--worker-tls-key", .help = "PEM file with its key"});
    visit(worker_tls_ca,
          {.flag = "--worker-tls-ca",
           .help = "PEM file with the authorities of workers' certificates, which are of the name "
                   "tandem-worker, or tandem-worker-RANK"});
    visit(worker_cpus,
          {.flag = "--worker-cpus",
           .help = "CPUs of each worker, separated by /: 0-15/16-31 for two; the threads of a CPU "
                   "worker have one each (default: all CPUs, wherever the system puts threads)"});
    visit(load_timeout, {.flag = "--load-timeout",
                         .help = "the longest that connecting and loading may take; a number is "
                                 "seconds",
                         .least = 0.1,
                         .most = 86400});
    visit(max_restarts,
          {.flag = "--max-restarts",
           .help = "how often lost workers may be replaced within the restart window; "
                   "0: the first loss ends the server",
           .least = 0,
           .most = 1000});
    visit(restart_window, {.flag = "--restart-window",
                           .help = "the time in which --max-restarts are counted; a number is "
                                   "seconds",
                           .least = 1,
                           .most = 86400});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_CLUSTER_CONFIG_H_
