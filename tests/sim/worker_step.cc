// The worker's steps: it starts, computes, waits for the other ranks, answers.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/step/codec.h"
#include "tests/sim/violation.h"
#include "tests/sim/worker.h"

namespace tandem::sim {
namespace {

using std::chrono::microseconds;

std::span<const uint8_t> Bytes(const std::string& frame) {
  return {reinterpret_cast<const uint8_t*>(frame.data()), frame.size()};
}

}  // namespace

void Worker::BeginStep() {
  while (broken_ && !steps_.empty()) AnswerStep();
  if (steps_.empty() || std::exchange(step_runs_, true)) return;
  const uint64_t run = ++step_run_;
  Later(random_.Time(microseconds(50), host_.scenario.compute_time), [this, run] {
    const auto parsed = step::ParseDescriptor(Bytes(steps_.front()));
    RequireOk(parsed.status());
    if (std::ranges::count(pages_->TokensOf(*parsed), host_.scenario.poison()) > 0) {
      return Exit("killed by signal 6");
    }
    host_.collectives.Join(Epoch{epoch_}, parsed->step_id, static_cast<size_t>(assignment_.size),
                           [this, run] { Do([this, run] { FinishStep(run); }); });
  });
  Later(config_.transport.step_timeout, [this, run] {
    if (step_runs_ && run == step_run_) broken_ = true;  // waited for the other ranks in vain
    FinishStep(run);
  });
}

void Worker::FinishStep(uint64_t run) {
  if (run != step_run_ || !std::exchange(step_runs_, false)) return;
  AnswerStep();
  BeginStep();
}

void Worker::AnswerStep() {
  step::StepResult result = Compute(steps_.front());
  steps_.pop_front();
  Answer(std::move(result));
}

step::StepResult Worker::Compute(const std::string& frame) {
  step::StepResult result{.step_id = {},
                          .epoch = Epoch{epoch_},
                          .rank = static_cast<uint32_t>(assignment_.rank),
                          .status = {},
                          .rows = {},
                          .timings = {}};
  const auto parsed = step::ParseDescriptor(Bytes(frame));
  RequireOk(parsed.status());
  result.step_id = parsed->step_id;
  if (broken_) {
    result.status = absl::AbortedError("a step of this epoch has failed");
    return result;
  }
  Require(parsed->epoch.value == epoch_, "a step of another epoch");
  result.status = pages_->Run(*parsed, result);
  RequireOk(result.status);
  if (assignment_.rank != 0) {
    result.rows.clear();
    result.pooled.clear();
    result.guesses.clear();
  }
  return result;
}

void Worker::Answer(step::StepResult result) {
  const ResultFault fault = std::exchange(result_fault_, ResultFault::kNone);
  if (fault != ResultFault::kNone) {
    // One that claims to be of the next epoch does harm there.
    const bool later = fault == ResultFault::kWrongEpoch;
    host_.network.harm.Note(clock_.Now() + (later ? host_.scenario.network_delay : Duration{}));
  }
  if (fault == ResultFault::kNoAnswer) return;
  Distort(fault, result);
  std::vector<uint8_t> frame;
  step::Serialize(result, frame);
  if (fault == ResultFault::kGarbage) {
    frame[random_.Below(frame.size())] ^= static_cast<uint8_t>(1 + random_.Below(255));
    if (step::ParseResult(frame).ok()) frame.resize(frame.size() - 1);
  }
  if (fault == ResultFault::kDouble) stream_->DoubleNext();
  Send([&](auto& message) { message.set_step_result(frame.data(), frame.size()); });
}

void Worker::Distort(ResultFault fault, step::StepResult& result) const {
  if (fault == ResultFault::kWrongEpoch) ++result.epoch.value;
  if (fault == ResultFault::kWrongStep) ++result.step_id.value;
  if (fault == ResultFault::kWrongRank) ++result.rank;
  if (fault == ResultFault::kNoRows) {
    result.rows.clear();
    result.pooled.clear();
    result.guesses.clear();
  }
  if (fault == ResultFault::kError) {
    result.status = absl::InternalError("simulated error");
    result.rows.clear();
    result.pooled.clear();
    result.guesses.clear();
  }
  const auto no_token = static_cast<TokenId>(host_.scenario.engine.vocab_size);
  if (fault == ResultFault::kBadGuess) std::ranges::fill(result.guesses, no_token);
  if (fault == ResultFault::kWrongGuesses) {
    result.guesses.resize(result.guesses.empty() ? 1 : result.guesses.size() - 1);
  }
  for (step::RowResult& row : result.rows) {
    if (row.tokens.empty()) continue;
    if (fault == ResultFault::kBadToken) row.tokens = {no_token};
    if (fault == ResultFault::kNotFinite) {
      row.tokens = {step::kNotFinite};
      ++host_.circumstances.num_not_finite;
      return;
    }
  }
}

}  // namespace tandem::sim
