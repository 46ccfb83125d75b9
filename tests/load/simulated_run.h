// SimulatedRun: the requests of one run on the simulation of a server: the coordinator's real
// engine, scheduler and KV cache, workers that only take their time, and clients, in one thread and
// in no time. Equal runs have equal records. Nothing is lost on the way, and nothing takes time but
// steps: no network, no tokenizer.
#ifndef TANDEM_TESTS_LOAD_SIMULATED_RUN_H_
#define TANDEM_TESTS_LOAD_SIMULATED_RUN_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/event_clock.h"
#include "coordinator/engine/engine_loop.h"
#include "coordinator/simulation/step_costs.h"
#include "tests/load/request.h"
#include "tests/load/run_record.h"
#include "tests/load/run_settings.h"
#include "tests/load/sample_recorder.h"

namespace tandem::load {

struct SimulatedServer {
  coordinator::EngineConfig engine{};  // valid
  coordinator::StepMeasurements steps{};
};

class SimulatedRun final : public RecordedRun {
 public:
  // Prompts are token ids. A statistics point each `stats_interval`. All are borrowed.
  SimulatedRun(const SimulatedServer& server, const std::vector<LoadRequest>& requests,
               const RunSettings& settings, int32_t priority, Duration stats_interval);
  ~SimulatedRun() override;

  // Called once.
  RunRecord Run();
  // Thread-safe.
  void Stop() { stop_ = true; }

 private:
  class Client;

  double Now() const override;
  void OnRequestTokens(uint32_t) override {}
  void OnRequestEnd(const absl::Status& status) override;

  TimePoint IntendedTime(size_t request) const;
  // Sends the next request if it is due, or ends the run after the last one's end. One at a time:
  // an idle engine begins a step with the first of several that are sent at once, as a server does.
  void Continue();
  void SetTimer(TimePoint when);
  void Send(const LoadRequest& request, double intended_s);
  // Now, and again as long as requests are in flight.
  void AddStats();
  // Passes tokens to clients at the moment at which they were drawn.
  void BeforeWait();

  const std::vector<LoadRequest>& requests_;
  const RunSettings& settings_;
  const int32_t priority_;
  const Duration stats_interval_;
  EventClock clock_;
  const TimePoint start_ = clock_.Now();
  coordinator::EngineLoop engine_;
  std::deque<SampleRecorder> recorders_;  // stable addresses
  size_t in_flight_ = 0;
  std::optional<TimePoint> timer_{};  // of the next Continue that is set
  bool has_stats_timer_ = false;
  bool over_ = false;  // nothing more is sent
  RunRecord record_;
  std::atomic<bool> stop_ = false;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SIMULATED_RUN_H_
