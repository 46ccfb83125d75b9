// MetricsPort: the HTTP port for people and programs that watch a server: /metrics for Prometheus,
// a status page at /, and its numbers at /status.json. It says nothing of any prompt or answer.
//
// It listens before there is a model; numbers of the engine are there from Serve to StopServing.
#ifndef TANDEM_COORDINATOR_OBSERVE_METRICS_PORT_H_
#define TANDEM_COORDINATOR_OBSERVE_METRICS_PORT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/rank_times.h"
#include "coordinator/observe/exporter.h"
#include "coordinator/observe/http_server.h"
#include "coordinator/observe/request_metrics.h"
#include "coordinator/observe/server_state.h"

namespace tandem::coordinator {

// Thread-safe.
class MetricsPort {
 public:
  using ObserveFn = std::function<Observation::Engine()>;

  // Everything must outlive it. UNAVAILABLE, naming --metrics-listen and the system's reason.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Start(const std::string& address,
                                                            const ServerState& state,
                                                            const RequestMetrics& requests,
                                                            const RankTimes& rank_times);
  ~MetricsPort();

  // HOST:PORT that is bound.
  const std::string& address() const { return http_->address(); }
  // `model`: its name. `engine` is called on the port's threads until StopServing has returned.
  void Serve(const std::string& model, ObserveFn engine);
  void StopServing();
  // Whether the server's HTTP gateway gives signs of life. Never called: it has none.
  void SetHttpGateway(bool up);

 private:
  MetricsPort(const ServerState& state, const RequestMetrics& requests, const RankTimes& rank_times)
      : state_(state), requests_(requests), rank_times_(rank_times) {}

  std::vector<prometheus::MetricFamily> Families(const ServerView& state);
  std::string MetricsText();
  std::string Status();

  const ServerState& state_;
  const RequestMetrics& requests_;
  const RankTimes& rank_times_;
  Mutex mutex_;  // held while `engine_` is called
  std::string model_ TANDEM_GUARDED_BY(mutex_);
  ObserveFn engine_ TANDEM_GUARDED_BY(mutex_);
  std::optional<bool> http_gateway_up_ TANDEM_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> http_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_METRICS_PORT_H_
