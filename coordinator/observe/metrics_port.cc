#include "coordinator/observe/metrics_port.h"

#include <prometheus/text_serializer.h>

#include <utility>

#include "common/base/status.h"
#include "coordinator/observe/status_json.h"
#include "coordinator/observe/status_page.h"

namespace tandem::coordinator {

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Start(const std::string& address,
                                                                const ServerState& state,
                                                                const RequestMetrics& requests,
                                                                const RankTimes& rank_times) {
  std::unique_ptr<MetricsPort> port(new MetricsPort(state, requests, rank_times));
  HttpServer::Pages pages;
  pages["/"] = {.type = "text/html; charset=utf-8",
                .make = [] { return std::string(kStatusPage); }};
  pages["/metrics"] = {.type = "text/plain; version=0.0.4; charset=utf-8",
                       .make = [self = port.get()] { return self->MetricsText(); }};
  pages["/status.json"] = {.type = "application/json",
                           .make = [self = port.get()] { return self->Status(); }};
  TANDEM_ASSIGN_OR_RETURN(port->http_,
                          HttpServer::Start("--metrics-listen", address, std::move(pages)));
  return port;
}

MetricsPort::~MetricsPort() = default;

void MetricsPort::Serve(const std::string& model, ObserveFn engine) {
  MutexLock lock(mutex_);
  model_ = model;
  engine_ = std::move(engine);
}

void MetricsPort::StopServing() {
  MutexLock lock(mutex_);
  engine_ = nullptr;
}

void MetricsPort::SetHttpGateway(bool up) {
  MutexLock lock(mutex_);
  http_gateway_up_ = up;
}

std::vector<prometheus::MetricFamily> MetricsPort::Families(const ServerView& state) {
  Observation observed{.state = state, .memory = MeasureMemory(), .rank_times = rank_times_.Get()};
  {
    MutexLock lock(mutex_);
    observed.http_gateway_up = http_gateway_up_;
    if (engine_) observed.engine = engine_();
  }
  return MakeFamilies(observed, requests_);
}

std::string MetricsPort::MetricsText() {
  return prometheus::TextSerializer().Serialize(Families(state_.Get()));
}

std::string MetricsPort::Status() {
  const ServerView state = state_.Get();
  const std::vector<prometheus::MetricFamily> families = Families(state);
  MutexLock lock(mutex_);
  return StatusJson(model_, state, families);
}

}  // namespace tandem::coordinator
