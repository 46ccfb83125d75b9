#include "coordinator/engine/pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "coordinator/engine/result_check.h"

namespace tandem::coordinator {
namespace {

// How long an idle worker may be silent.
constexpr auto kMostSilence = std::chrono::seconds(8);

}  // namespace

Pipeline::Pipeline(WorkerGroup workers, uint32_t depth, uint32_t vocab_size, uint32_t hidden_size,
                   Duration step_timeout, const Clock& clock)
    : workers_(std::move(workers)),
      depth_(depth),
      vocab_size_(vocab_size),
      hidden_size_(hidden_size),
      step_timeout_(step_timeout),
      clock_(clock) {}

absl::Status Pipeline::Submit(Step step) {
  TANDEM_CHECK(!full()) << depth_ << " steps are in flight already";
  const Deadline deadline = Deadline::After(step_timeout_, clock_);
  TANDEM_RETURN_IF_ERROR(workers_->Submit(step.descriptor, deadline));
  in_flight_.push_back({.step = std::move(step), .deadline = deadline});
  return absl::OkStatus();
}

absl::StatusOr<Pipeline::Answer> Pipeline::Collect() {
  TANDEM_CHECK(!empty()) << "no step is in flight";
  TANDEM_ASSIGN_OR_RETURN(step::StepResult result, workers_->Collect(in_flight_.front().deadline));
  Step step = std::move(in_flight_.front().step);
  in_flight_.pop_front();
  // The workers begin with the next one now.
  if (!empty()) in_flight_.front().deadline = Deadline::After(step_timeout_, clock_);
  TANDEM_RETURN_IF_ERROR(CheckResult(step.descriptor, result, vocab_size_, hidden_size_));
  return Answer{.step = std::move(step), .result = std::move(result)};
}

absl::Status Pipeline::Heartbeat() {
  return workers_->Heartbeat(std::min<Duration>(step_timeout_, kMostSilence), clock_);
}

void Pipeline::Drain(const absl::Status& reason) {
  in_flight_.clear();
  workers_->Abort(reason);
  workers_.reset();
}

}  // namespace tandem::coordinator
