// The worker's commands of an epoch, from Configure to Started, and the epoch's end.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/configure_codec.h"
#include "tests/sim/violation.h"
#include "tests/sim/worker.h"

namespace tandem::sim {

using std::chrono::milliseconds;

void Worker::Configure(const v1::Configure& message) {
  config::WorkerConfig config;
  config::WorkerAssignment assignment;
  RequireOk(config::FromProto(message, config, assignment));
  Require(assignment.epoch.value > epoch_, "Configure does not raise the epoch");
  ++serial_;
  epoch_ = assignment.epoch.value;
  config_ = std::move(config);
  assignment_ = std::move(assignment);
  pages_.reset();
  steps_.clear();
  step_runs_ = broken_ = false;
  state_ = State::kConfigured;
}

void Worker::Load(const v1::Load& message) {
  Require(message.epoch() == epoch_ && state_ == State::kConfigured, "Load without Configure");
  state_ = State::kLoading;
  const auto say = [this] {
    Send([this](auto& loading) { loading.mutable_loading()->set_epoch(epoch_); });
  };
  say();
  const Duration time = has_weights_ ? random_.Time(milliseconds(1), milliseconds(20))
                                     : random_.Time(milliseconds(20), milliseconds(1500));
  Later(time / 2, say);
  Later(time, [this] { Loaded(); });
}

void Worker::Loaded() {
  has_weights_ = true;
  if (aborted_epoch_ >= epoch_) return Fail(absl::StatusCode::kAborted, "aborted");
  if (std::exchange(fail_load_, false)) {
    host_.network.harm.Note(clock_.Now() + host_.scenario.network_delay);
    return Fail(absl::StatusCode::kInternal, "cannot read the model");
  }
  JoinGroup();
}

void Worker::JoinGroup() {
  state_ = State::kJoining;
  first_call_ = last_call_ + 1;
  num_answers_ = 0;
  for (int rank = 0; rank < assignment_.size; ++rank) {
    Send([&](auto& message) {
      if (rank == assignment_.rank) {
        auto* put = message.mutable_rendezvous_put();
        put->set_epoch(epoch_);
        put->set_call(++last_call_);
        put->set_key(absl::StrCat("rank ", rank));
      } else {
        auto* get = message.mutable_rendezvous_get();
        get->set_epoch(epoch_);
        get->set_call(++last_call_);
        get->set_key(absl::StrCat("rank ", rank));
      }
    });
  }
  Later(config_.transport.step_timeout, [this] {
    if (state_ == State::kJoining) Fail(absl::StatusCode::kDeadlineExceeded, "others did not join");
  });
}

void Worker::TakeAnswer(const v1::RendezvousAnswer& answer) {
  if (state_ != State::kJoining || answer.call() < first_call_) return;
  if (answer.code() != 0) return Fail(absl::StatusCode(answer.code()), answer.message());
  if (++num_answers_ == assignment_.size) SendReady();
}

void Worker::SendReady() {
  state_ = State::kReady;
  const bool fewer = std::exchange(fewer_blocks_, false);
  if (fewer) host_.network.harm.Note(clock_.Now() + host_.scenario.network_delay);
  Send([&](auto& message) {
    message.mutable_ready()->set_epoch(epoch_);
    for (const auto& group : host_.scenario.engine.kv_cache.groups) {
      message.mutable_ready()->add_num_blocks(fewer ? group.num_blocks - 1
                                                    : group.num_blocks +
                                                          static_cast<uint32_t>(assignment_.rank));
    }
  });
  TakeNext();
}

void Worker::Start(const v1::Start& message) {
  Require(message.epoch() == epoch_ && (state_ == State::kReady || aborted_epoch_ >= epoch_),
          "Start without Ready");
  state_ = State::kStarting;
  step::StepLimits limits = step::StepLimits::Of(config_);
  limits.vocab_size = host_.scenario.engine.vocab_size;
  limits.hidden_size = host_.scenario.engine.hidden_size;
  const std::vector<uint32_t>& windows = host_.scenario.model.window_tokens;
  limits.windows.assign(windows.begin(), windows.end());
  limits.workers_guess = host_.scenario.model.workers_guess;
  limits.num_blocks.assign(message.num_blocks().begin(), message.num_blocks().end());
  if (host_.scenario.model.recurrent) {
    const auto& snapshots = host_.scenario.engine.kv_cache.snapshots;
    limits.num_snapshots = snapshots.has_value() ? snapshots->num_snapshots : 0;
  }
  const uint64_t fill = coordinator::SimulatedMix(static_cast<uint64_t>(pid_), epoch_);
  pages_.emplace(host_.scenario.model, std::move(limits), fill);
  Later(random_.Time(milliseconds(1), milliseconds(50)), [this] {
    if (aborted_epoch_ >= epoch_) return Fail(absl::StatusCode::kAborted, "aborted");
    state_ = State::kStepping;
    Send([this](auto& started) { started.mutable_started()->set_epoch(epoch_); });
    TakeNext();
  });
}

void Worker::Abort(uint64_t epoch, const std::string& reason) {
  aborted_epoch_ = std::max(aborted_epoch_, epoch);
  if (epoch < epoch_) return;
  if (state_ == State::kJoining) return Fail(absl::StatusCode::kAborted, reason);
  if (state_ != State::kStepping) return;
  ++serial_;
  broken_ = true;
  step_runs_ = false;
  BeginStep();
}

}  // namespace tandem::sim
