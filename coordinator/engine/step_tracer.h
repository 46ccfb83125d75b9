// StepTracer: tells a TraceRecorder, while it records, of the engine's steps and requests.
//
// One thread (the engine's). While nothing is recorded a step costs a relaxed load, and each call a
// comparison.
#ifndef TANDEM_COORDINATOR_ENGINE_STEP_TRACER_H_
#define TANDEM_COORDINATOR_ENGINE_STEP_TRACER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/clock.h"
#include "coordinator/engine/generation.h"
#include "coordinator/engine/step.h"
#include "coordinator/observe/trace_recorder.h"

namespace tandem::coordinator {

class StepTracer {
 public:
  using Generations = absl::flat_hash_map<RequestHandle, std::shared_ptr<Generation>>;

  // Null: nothing is ever recorded. Outlives the tracer.
  void set_recorder(TraceRecorder* recorder) { recorder_ = recorder; }

  // Before each step: whether a recording has begun or ended. One that has begun learns of the
  // requests that are there.
  void Follow(const Generations& generations) {
    const uint64_t now = recorder_ == nullptr ? 0 : recorder_->recording();
    if (now != recording_) Begin(now, generations);
  }

  void Arrived(const Generation& generation) {
    if (recording_ != 0) AddArrival(generation, Now());
  }
  // What `step`, which is about to be sent, is made of.
  void Describe(const Step& step, StepSubmitted& submitted) {
    if (recording_ != 0) DescribeEntries(step, submitted);
  }
  void Submitted(const StepSubmitted& submitted) {
    if (recording_ != 0) Add(submitted);
  }
  void Settled(const StepSettled& settled) {
    if (recording_ != 0) Add(settled);
  }
  void Updated(const Generation& generation, const StreamUpdate& update) {
    if (recording_ != 0) AddUpdate(generation, update);
  }
  // Its stream has ended it.
  void Stopped(const Generation& generation) {
    if (recording_ != 0) AddEnd(generation, "stop");
  }
  void Lost(Epoch epoch, const absl::Status& reason) {
    if (recording_ != 0) AddLoss(epoch, reason);
  }
  void Resumed(Epoch epoch) {
    if (recording_ != 0) Add(WorkersChange{.at = Now(), .epoch = epoch});
  }

 private:
  // What the recording knows of a request.
  struct Followed {
    bool runs = false;     // it is in steps
    bool decodes = false;  // has a token since then
  };

  static TimePoint Now() { return std::chrono::steady_clock::now(); }
  void Add(TraceEvent event) { recorder_->Add(recording_, std::move(event)); }

  void Begin(uint64_t recording, const Generations& generations);
  void AddArrival(const Generation& generation, TimePoint now);
  void DescribeEntries(const Step& step, StepSubmitted& submitted);
  void AddUpdate(const Generation& generation, const StreamUpdate& update);
  void AddChange(RequestChange::What what, RequestHandle handle, TimePoint at);
  void AddEnd(const Generation& generation, const char* reason);
  void AddLoss(Epoch epoch, const absl::Status& reason);

  TraceRecorder* recorder_ = nullptr;
  uint64_t recording_ = 0;                                 // 0: none
  absl::flat_hash_map<RequestHandle, Followed> requests_;  // that have not ended
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_STEP_TRACER_H_
