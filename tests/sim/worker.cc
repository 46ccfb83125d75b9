// The worker's process, and what arrives for it; worker_bring_up.cc has the way to Started,
// worker_step.cc the steps.
#include "tests/sim/worker.h"

#include <utility>

#include "common/base/version.h"
#include "common/step/protocol_version.h"
#include "tests/sim/violation.h"

namespace tandem::sim {

using std::chrono::milliseconds;

Worker::Worker(const Host& host, std::optional<int> rank, int64_t pid)
    : host_(host),
      clock_(host.network.clock),
      random_(host.network.random),
      wanted_rank_(rank),
      pid_(pid),
      stream_(std::make_shared<ControlStream>(
          host.network, ControlStream::Worker{
                            .take = [this](auto message) { Do([=, this] { Take(message); }); },
                            .closed = [this] { Do([this] { Exit("exited with code 1"); }); }})) {}

void Worker::Boot() {
  Later(random_.Time(milliseconds(5), milliseconds(200)), [this] {
    v1::Hello hello;
    hello.set_protocol_version(step::kWorkerProtocolVersion);
    hello.set_build(std::string(BuildVersion()));
    hello.set_host_id("simulated");
    if (wanted_rank_.has_value()) hello.set_rank(*wanted_rank_);
    hello.set_pid(pid_);
    stream_->Open(std::move(hello));
  });
}

void Worker::Exit(const std::string& how) {
  if (!running()) return;
  ended_ = absl::UnavailableError(how);
  host_.network.harm.Note(clock_.Now());
  held_.clear();
  stream_->Close();
}

void Worker::Stop() {
  stopped_ = true;
  host_.network.harm.Note(clock_.Now());
}

void Worker::Continue() {
  if (!std::exchange(stopped_, false)) return;
  host_.network.harm.Note(clock_.Now() + host_.scenario.network_delay);
  while (!held_.empty() && running()) {
    const auto act = std::move(held_.front());
    held_.pop_front();
    act();
  }
}

void Worker::Do(std::function<void()> act) {
  if (!running()) return;
  if (stopped_) return held_.push_back(std::move(act));
  act();
}

void Worker::Later(Duration delay, std::function<void()> act) {
  clock_.After(delay, [this, serial = serial_, act = std::move(act)] {
    Do([this, serial, act] {
      if (serial == serial_) act();
    });
  });
}

void Worker::Send(const std::function<void(v1::WorkerMessage&)>& fill) {
  v1::WorkerMessage message;
  fill(message);
  stream_->Send(std::move(message));
}

void Worker::Fail(absl::StatusCode code, const std::string& reason) {
  state_ = State::kFailed;
  Send([&](auto& message) {
    message.mutable_failed()->set_epoch(epoch_);
    message.mutable_failed()->set_code(static_cast<int>(code));
    message.mutable_failed()->set_message(reason);
  });
  TakeNext();
}

void Worker::SendStray() {
  const uint64_t epoch = epoch_ - random_.Below(2);
  const uint64_t kind = random_.Below(5);
  if (epoch == epoch_ || kind == 4) {
    host_.network.harm.Note(clock_.Now() + host_.scenario.network_delay);
  }
  Send([&](auto& message) {
    if (kind == 0) message.mutable_loading()->set_epoch(epoch);
    if (kind == 1) message.mutable_ready()->set_epoch(epoch);
    if (kind == 2) message.mutable_started()->set_epoch(epoch);
    if (kind == 3) {
      message.mutable_failed()->set_epoch(epoch);
      message.mutable_failed()->set_code(static_cast<int>(absl::StatusCode::kInternal));
    }
    if (kind == 4) message.mutable_pong()->set_call(random_.Below(10));
  });
}

void Worker::Take(const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kPing:
      return Send([&](auto& pong) { pong.mutable_pong()->set_call(message.ping().call()); });
    case v1::CoordinatorMessage::kAbort:
      return Abort(message.abort().epoch(), message.abort().reason());
    case v1::CoordinatorMessage::kRendezvousAnswer:
      return TakeAnswer(message.rendezvous_answer());
    case v1::CoordinatorMessage::kShutdown:
      return Exit("exited with code 0");
    case v1::CoordinatorMessage::kRefused:
      return Exit("exited with code 1");
    default:
      commands_.push_back(message);
      TakeNext();
  }
}

void Worker::TakeNext() {
  const auto busy = [this] {
    return state_ == State::kLoading || state_ == State::kJoining || state_ == State::kStarting;
  };
  while (!commands_.empty() && !busy() && running()) {
    const v1::CoordinatorMessage message = std::move(commands_.front());
    commands_.pop_front();
    TakeCommand(message);
  }
}

void Worker::TakeCommand(const v1::CoordinatorMessage& message) {
  if (message.has_configure()) return Configure(message.configure());
  if (message.has_load()) return Load(message.load());
  if (message.has_start()) return Start(message.start());
  Require(message.message_case() == v1::CoordinatorMessage::kStep, "an unknown command");
  if (state_ != State::kStepping) return;  // after Failed or Abort
  steps_.push_back(message.step());
  BeginStep();
}

}  // namespace tandem::sim
