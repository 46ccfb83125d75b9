// MeasuredEngine: an engine whose requests are measured on their way, at their streams: on the
// writers' threads, none of it on the engine's.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_OBSERVE_MEASURED_ENGINE_H_
#define TANDEM_COORDINATOR_OBSERVE_MEASURED_ENGINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/engine/engine.h"
#include "coordinator/observe/request_metrics.h"

namespace tandem::coordinator {

class MeasuredEngine final : public EngineHandle {
 public:
  // All must outlive it and its requests' streams.
  MeasuredEngine(EngineHandle& engine, RequestMetrics& metrics,
                 const Clock& clock = Clock::System())
      : engine_(engine), metrics_(metrics), clock_(clock) {}

  // A request arrives when it is added.
  absl::StatusOr<std::vector<RequestHandle>> AddAll(std::vector<Request> requests) override;
  void Cancel(RequestHandle handle) override { engine_.Cancel(handle); }
  absl::Status ResetPrefixCache() override { return engine_.ResetPrefixCache(); }
  EngineStats Stats() const override { return engine_.Stats(); }

 private:
  EngineHandle& engine_;
  RequestMetrics& metrics_;
  const Clock& clock_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_MEASURED_ENGINE_H_
