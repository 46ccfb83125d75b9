#include "worker/control/step_server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/poll_pause.h"
#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::worker {
namespace {

// How long one wait for a step takes; normally the channel's close ends it.
constexpr auto kIdlePoll = std::chrono::seconds(5);

}  // namespace

void StepServer::Serve() {
  idle_since_us_ = NowMicros();
  absl::Status open;
  while (open.ok()) {
    open = pending_.size() < runner_.max_in_flight() ? TakeUpOrAnswer() : AnswerOldest();
  }
  // The coordinator takes no more answers, but the device still uses the steps' buffers.
  for (const Pending& step : pending_) Finish(step);
  pending_.clear();
}

absl::Status StepServer::TakeUpOrAnswer() {
  for (const PollPause pause;; pause()) {
    const absl::StatusOr<transport::Frame> frame = Receive();
    if (absl::IsUnavailable(frame.status())) return frame.status();
    if (!absl::IsDeadlineExceeded(frame.status())) {
      TakeUp(frame);
      return absl::OkStatus();
    }
    if (pending_.empty()) return absl::OkStatus();
    const Pending& oldest = pending_.front();
    if (!oldest.begun.ok() || runner_.Done(*oldest.begun)) return AnswerOldest();
  }
}

absl::StatusOr<transport::Frame> StepServer::Receive() {
  const Duration wait = pending_.empty() ? Duration(kIdlePoll) : Duration::zero();
  return channel_.Receive(Deadline::After(wait, clock_));
}

void StepServer::TakeUp(const absl::StatusOr<transport::Frame>& frame) {
  const auto now_us = NowMicros();
  Pending next{.step = {},
               .timings = {.received_at_us = static_cast<uint64_t>(now_us)},
               .begun = StepTicket{}};
  if (pending_.empty()) {
    next.timings.idle_us =
        static_cast<uint32_t>(std::min<int64_t>(now_us - idle_since_us_, UINT32_MAX));
  }
  next.begun = Begin(frame, next);
  pending_.push_back(std::move(next));
}

absl::StatusOr<StepTicket> StepServer::Begin(const absl::StatusOr<transport::Frame>& frame,
                                             Pending& pending) {
  TANDEM_RETURN_IF_ERROR(frame.status());
  const int64_t begin_us = NowMicros();
  TANDEM_ASSIGN_OR_RETURN(step::StepDescriptor step, step::ParseDescriptor(*frame));
  pending.step = step.step_id;
  pending.timings.receive_us = static_cast<uint32_t>(NowMicros() - begin_us);
  return runner_.Begin(std::move(step), Deadline::After(options_.step_timeout, clock_));
}

absl::Status StepServer::AnswerOldest() {
  const Pending oldest = std::move(pending_.front());
  pending_.pop_front();
  TANDEM_RETURN_IF_ERROR(Send(Finish(oldest)));
  idle_since_us_ = NowMicros();
  return absl::OkStatus();
}

step::StepResult StepServer::Finish(const Pending& pending) {
  absl::StatusOr<step::StepResult> done =
      pending.begun.ok() ? runner_.Finish(*pending.begun) : pending.begun.status();
  step::StepResult result;
  if (done.ok()) {
    result = *std::move(done);
  } else {
    result.step_id = pending.step;
    result.status = done.status();
  }
  result.rank = options_.rank;
  result.epoch = options_.epoch;
  result.timings.received_at_us = pending.timings.received_at_us;
  result.timings.idle_us = pending.timings.idle_us;
  result.timings.receive_us = pending.timings.receive_us;
  return result;
}

absl::Status StepServer::Send(const step::StepResult& result) {
  step::Serialize(result, frame_);
  return channel_.Send(frame_, Deadline::After(options_.step_timeout, clock_));
}

}  // namespace tandem::worker
