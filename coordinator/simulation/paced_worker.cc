#include "coordinator/simulation/paced_worker.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <utility>

#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

StepLoad LoadOf(const step::StepDescriptor& step) {
  StepLoad load;
  for (const step::SequenceEntry& entry : step.sequences) {
    const uint32_t begin = entry.context_len - entry.query_len;
    if (entry.query_len == 1 && begin > 0) {
      load.AddDecode(begin);
    } else {
      load.AddPrefill(begin, entry.query_len);
    }
  }
  return load;
}

// What the engine takes as the time of the step.
step::StepTimings TimingsOf(Duration time) {
  const int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  step::StepTimings timings;
  timings.wait_us =
      static_cast<uint32_t>(std::min<int64_t>(us, std::numeric_limits<uint32_t>::max()));
  return timings;
}

}  // namespace

absl::Status PacedWorker::Submit(std::span<const uint8_t> frame, Deadline) {
  TANDEM_ASSIGN_OR_RETURN(const step::StepDescriptor step, step::ParseDescriptor(frame));
  const Duration time = costs_.Of(LoadOf(step), static_cast<uint32_t>(step.sampling.size()));
  free_at_ = std::max(free_at_, clock_.Now()) + time;
  step::StepResult result{.step_id = step.step_id,
                          .epoch = step.epoch,
                          .status = {},
                          .rows = std::vector<step::RowResult>(step.rows.size()),
                          .timings = TimingsOf(time)};
  for (step::RowResult& row : result.rows) row.tokens = {0};
  in_flight_.push_back({free_at_, std::move(result)});
  return absl::OkStatus();
}

absl::StatusOr<step::StepResult> PacedWorker::Collect(Deadline deadline) {
  if (in_flight_.empty()) return absl::DeadlineExceededError("no step");
  const TimePoint done = in_flight_.front().done;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable never;
  Deadline::At(std::min(done, deadline.when()), clock_).Wait(never, lock, [] { return false; });
  if (clock_.Now() < done) return absl::DeadlineExceededError("no answer yet");
  step::StepResult result = std::move(in_flight_.front().result);
  in_flight_.pop_front();
  return result;
}

}  // namespace tandem::coordinator
