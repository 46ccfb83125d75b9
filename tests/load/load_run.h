// LoadRun: sends the requests of one run at their times and records what comes back.
//
// Open loop: each request is sent at its time, in flight or not; with a limit of requests in flight
// it may wait at the client, and its latency counts that wait. Closed loop (a limit and no times):
// a request's intended time is when it may be sent. A run ends early, with the requests in flight
// cancelled, by Stop and when the server is lost: a request failed to reach it and neither does a
// question for the model.
#ifndef TANDEM_TESTS_LOAD_LOAD_RUN_H_
#define TANDEM_TESTS_LOAD_LOAD_RUN_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "tests/load/backend.h"
#include "tests/load/request.h"
#include "tests/load/run_record.h"
#include "tests/load/run_settings.h"
#include "tests/load/sample_recorder.h"

namespace tandem::load {

// Of now; for a progress bar.
struct RunProgress {
  uint64_t ended = 0;
  uint64_t in_flight = 0;
  uint64_t tokens = 0;
  double elapsed_s = 0;
};

class LoadRun final : public RecordedRun {
 public:
  // All are borrowed.
  LoadRun(Backend& backend, const std::vector<LoadRequest>& requests, const RunSettings& settings);
  ~LoadRun() override;

  // Blocks until the last request has ended. Called once.
  RunRecord Run();

  // Thread-safe, also before and after Run.
  void Stop();
  RunProgress Progress() const;
  TimePoint start() const { return start_; }

 private:
  // Sends all requests; false if the run ended early.
  bool SendAll();
  void Send(const LoadRequest& request, double intended_s);
  // Waits until `ready` or the deadline; false if the run must end early.
  template <typename Ready>
  bool Await(Deadline deadline, Ready ready);
  // Whether a request failed to reach the server, which does not answer now.
  bool ServerIsLost();
  double Now() const override;
  void OnRequestTokens(uint32_t num_tokens) override;
  void OnRequestEnd(const absl::Status& status) override;

  Backend& backend_;
  const std::vector<LoadRequest>& requests_;
  const RunSettings& settings_;
  const TimePoint start_ = Clock::System().Now();
  std::deque<SampleRecorder> recorders_;  // stable addresses
  RunEnd end_ = RunEnd::kDone;
  std::string end_reason_;

  std::atomic<uint64_t> tokens_{0};
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t in_flight_ TANDEM_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool stop_ TANDEM_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> suspicion_ TANDEM_GUARDED_BY(mutex_);  // the server may be gone
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_LOAD_RUN_H_
