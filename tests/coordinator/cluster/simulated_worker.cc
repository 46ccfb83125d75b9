#include "tests/coordinator/cluster/simulated_worker.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/snapshot_interval.h"
#include "common/step/codec.h"

namespace tandem::coordinator {

SimulatedWorker::SimulatedWorker(int rank, SimulatedModel model, std::vector<uint32_t> num_blocks,
                                 SimulatedScript script)
    : rank_(rank),
      model_(std::move(model)),
      can_hold_(std::move(num_blocks)),
      script_(std::move(script)) {}

absl::Status SimulatedWorker::Configure(const config::WorkerConfig& config,
                                        const config::WorkerAssignment& assignment) {
  config_ = config;
  assignment_ = assignment;
  submitted_.clear();
  pages_.reset();
  return Health();
}

absl::Status SimulatedWorker::StartLoad() { return Health(); }

absl::StatusOr<WorkerReady> SimulatedWorker::FinishLoad(Deadline) {
  if (script_.fail_load) return absl::NotFoundError(absl::StrCat("rank ", rank_, ": no model"));
  if (script_.waits_in_vain) {
    return absl::AbortedError(absl::StrCat("rank ", rank_, ": waited in vain"));
  }
  if (script_.loads_for_ever) return absl::DeadlineExceededError("no answer in time");
  TANDEM_RETURN_IF_ERROR(Health());
  return WorkerReady{.num_blocks = can_hold_, .memory_plan = {}};
}

absl::Status SimulatedWorker::Start(const std::vector<uint32_t>& num_blocks) {
  step::StepLimits limits = step::StepLimits::Of(config_);
  limits.vocab_size = model_.vocab_size;
  limits.hidden_size = model_.hidden_size;
  limits.num_blocks = num_blocks;
  limits.windows.assign(model_.window_tokens.begin(), model_.window_tokens.end());
  limits.workers_guess = model_.workers_guess;
  if (model_.recurrent) limits.num_snapshots = kv::NumSnapshots(num_blocks, config_.cache);
  pages_.emplace(model_, std::move(limits), assignment_.epoch.value);
  return Health();
}

absl::Status SimulatedWorker::FinishStart(Deadline) { return Health(); }

absl::Status SimulatedWorker::Submit(std::span<const uint8_t> frame, Deadline) {
  TANDEM_RETURN_IF_ERROR(Health());
  const SimulatedFault* fault = FaultOf(num_steps_ + submitted_.size() + 1);
  if (fault != nullptr && *fault == SimulatedFault::kRefuse) {
    return absl::UnavailableError("the channel is closed");
  }
  submitted_.emplace_back(frame.begin(), frame.end());
  return absl::OkStatus();
}

absl::StatusOr<step::StepResult> SimulatedWorker::Collect(Deadline deadline) {
  if (script_.on_collect) script_.on_collect();
  if (aborted_) return absl::UnavailableError(absl::StrCat("rank ", rank_, " was aborted"));
  TANDEM_RETURN_IF_ERROR(Health());
  if (submitted_.empty()) return absl::DeadlineExceededError("no step");
  const SimulatedFault* fault = FaultOf(num_steps_ + 1);
  if (fault != nullptr) {
    if (*fault == SimulatedFault::kDie) {
      Kill();
      return LostError();
    }
    const bool hangs = *fault == SimulatedFault::kHang;
    if (hangs) {
      std::unique_lock lock(mutex_);
      deadline.Wait(aborted_changed_, lock, [&] { return aborted_.load(); });
    }
    if (hangs || (*fault == SimulatedFault::kDelay && polls_++ < script_.delay_polls)) {
      return absl::DeadlineExceededError("no answer yet");
    }
  }
  polls_ = 0;
  step::StepResult result = Run(submitted_.front());
  if (dead_) return LostError();  // of poison
  submitted_.pop_front();
  ++num_steps_;
  if (fault != nullptr) Distort(*fault, result);
  return result;
}

SimulatedFault* SimulatedWorker::FaultOf(uint64_t step) {
  auto found = script_.faults.find(step);
  return found == script_.faults.end() ? nullptr : &found->second;
}

void SimulatedWorker::Distort(SimulatedFault fault, step::StepResult& result) const {
  switch (fault) {
    case SimulatedFault::kWrongEpoch:
      ++result.epoch.value;
      break;
    case SimulatedFault::kWrongStepId:
      ++result.step_id.value;
      break;
    case SimulatedFault::kError:
      result.status = absl::InternalError("scripted error");
      result.rows.clear();
      result.pooled.clear();
      result.guesses.clear();
      break;
    case SimulatedFault::kBadToken:
      for (step::RowResult& row : result.rows) {
        row.tokens = {static_cast<TokenId>(model_.vocab_size)};
      }
      break;
    case SimulatedFault::kNotFinite:
      if (!result.rows.empty()) result.rows[0].tokens = {step::kNotFinite};
      if (!result.pooled.empty()) result.pooled.back() = std::nan("");
      break;
    case SimulatedFault::kNoRows:
      result.rows.clear();
      result.pooled.clear();
      result.guesses.clear();
      break;
    default:
      break;
  }
}

step::StepResult SimulatedWorker::Run(const std::vector<uint8_t>& frame) {
  step::StepResult result{.step_id = {},
                          .epoch = assignment_.epoch,
                          .rank = uint32_t(rank_),
                          .status = {},
                          .rows = {},
                          .timings = {}};
  absl::StatusOr<step::StepDescriptor> step = step::ParseDescriptor(frame);
  result.status = step.status();
  if (!step.ok()) return result;
  result.step_id = step->step_id;
  if (step->epoch != assignment_.epoch) {
    result.status = absl::FailedPreconditionError(absl::StrCat(
        "frame of epoch ", step->epoch.value, ", this is epoch ", assignment_.epoch.value));
    return result;
  }
  if (script_.poison && std::ranges::count(pages_->TokensOf(*step), *script_.poison) > 0) Kill();
  result.status = pages_->Run(*step, result);
  if (!result.status.ok() || rank_ != 0) {
    result.rows.clear();
    result.pooled.clear();
    result.guesses.clear();
  }
  return result;
}

absl::Status SimulatedWorker::LostError() const {
  return absl::UnavailableError(absl::StrCat("rank ", rank_, " exited with signal 9"));
}

absl::Status SimulatedWorker::Health() const { return dead_ ? LostError() : absl::OkStatus(); }

void SimulatedWorker::Abort(const absl::Status&) {
  if (script_.on_abort) script_.on_abort();
  {
    std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  aborted_changed_.notify_all();
}

std::vector<std::unique_ptr<WorkerClient>> MakeSimulatedWorkers(
    int size, const SimulatedModel& model, const std::vector<uint32_t>& num_blocks,
    const std::vector<SimulatedScript>& scripts) {
  std::vector<std::unique_ptr<WorkerClient>> workers;
  for (int rank = 0; rank < size; ++rank) {
    const bool scripted = static_cast<size_t>(rank) < scripts.size();
    workers.push_back(std::make_unique<SimulatedWorker>(
        rank, model, num_blocks, scripted ? scripts[rank] : SimulatedScript{}));
  }
  return workers;
}

}  // namespace tandem::coordinator
