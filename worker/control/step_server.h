// StepServer: answers the steps of one epoch, which come over its channel, in their order.
//
// A step is begun as soon as it has come, while the one before still runs if the device takes both
// (Backend::max_in_flight), and answered as soon as it is done, whether another one has come or
// not. One thread.
#ifndef TANDEM_WORKER_CONTROL_STEP_SERVER_H_
#define TANDEM_WORKER_CONTROL_STEP_SERVER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/step/result.h"
#include "common/transport/channel.h"
#include "worker/runtime/model_runner.h"

namespace tandem::worker {

class StepServer {
 public:
  struct Options {
    Epoch epoch;
    uint32_t rank = 0;
    // Of a step, anew when the one before it is answered; also of an answer.
    Duration step_timeout{};
  };

  // All must outlive this.
  StepServer(transport::Channel& channel, ModelRunner& runner, const Options& options,
             const Clock& clock)
      : channel_(channel), runner_(runner), options_(options), clock_(clock) {}

  // Until the channel closes or an answer can't be sent; afterwards no step is in flight.
  void Serve();

 private:
  // A step that was taken up and not answered.
  struct Pending {
    StepId step;
    step::StepTimings timings;  // of receiving it
    absl::StatusOr<StepTicket> begun;
  };

  // Takes up the next step, or answers the oldest one if that is done first. An error ends Serve.
  absl::Status TakeUpOrAnswer();
  // Looks for the next step, or waits for it if there is none to answer. DEADLINE_EXCEEDED if none
  // has come, UNAVAILABLE once the channel is closed.
  absl::StatusOr<transport::Frame> Receive();
  void TakeUp(const absl::StatusOr<transport::Frame>& frame);
  absl::StatusOr<StepTicket> Begin(const absl::StatusOr<transport::Frame>& frame, Pending& pending);
  // An error ends Serve.
  absl::Status AnswerOldest();
  step::StepResult Finish(const Pending& pending);
  absl::Status Send(const step::StepResult& result);

  transport::Channel& channel_;
  ModelRunner& runner_;
  const Options options_;
  const Clock& clock_;
  std::deque<Pending> pending_;  // oldest first, at most what the runner takes
  int64_t idle_since_us_ = 0;    // while nothing is pending
  std::vector<uint8_t> frame_;   // reused
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_STEP_SERVER_H_
