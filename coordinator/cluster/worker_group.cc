#include "coordinator/cluster/worker_group.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

// How long to wait for one rank before polling the others and all ranks' health.
constexpr auto kPollSlice = std::chrono::milliseconds(50);
// Grace period for other ranks to fail after the first: the cause is often detected after its
// effects.
constexpr auto kVerdictGrace = std::chrono::seconds(1);

// For a healthy worker to end an epoch before it answers: its communicator, its KV cache.
constexpr auto kEpochEndTime = std::chrono::seconds(10);
// How often an idle worker is pinged in the time that it may be silent.
constexpr int kPingsPerSilence = 4;
// For a process that runs to answer a ping.
constexpr auto kPongTime = std::chrono::seconds(1);

std::string RankName(size_t rank) { return absl::StrCat("rank ", rank); }

// A worker's error as the loss of the group. The message names the rank, added here if the client
// did not.
absl::Status Lost(size_t rank, const absl::Status& status) {
  const std::string message(status.message());
  if (message.find(RankName(rank)) == 0) return absl::UnavailableError(message);
  return absl::UnavailableError(absl::StrCat(RankName(rank), ": ", message));
}

// The blocks per KV group that every rank can hold, or `wanted`.
absl::StatusOr<std::vector<uint32_t>> AgreeOnBlocks(const std::vector<WorkerReady>& ready,
                                                    std::vector<uint32_t> wanted) {
  std::vector<uint32_t> least = ready[0].num_blocks;
  for (size_t rank = 0; rank < ready.size(); ++rank) {
    const std::vector<uint32_t>& blocks = ready[rank].num_blocks;
    if (blocks.size() != least.size() || least.empty()) {
      return absl::InternalError(absl::StrCat(RankName(rank), " has ", blocks.size(),
                                              " KV groups, rank 0 has ", least.size()));
    }
    for (size_t group = 0; group < least.size(); ++group) {
      if (!wanted.empty() && blocks[group] < wanted[group]) {
        return absl::ResourceExhaustedError(
            absl::StrCat(RankName(rank), " can hold ", blocks[group], " KV blocks of group ", group,
                         ", needed ", wanted[group], " as before it was lost"));
      }
      least[group] = std::min(least[group], blocks[group]);
    }
  }
  return wanted.empty() ? least : wanted;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> WorkerGroup::Bring(
    const config::WorkerConfig& config, const std::vector<config::WorkerAssignment>& ranks,
    Deadline deadline, std::vector<uint32_t> num_blocks, const std::function<bool()>& cancelled) {
  TANDEM_CHECK(ranks.size() == workers_.size() && !workers_.empty());
  in_flight_.clear();
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    TANDEM_RETURN_IF_ERROR(workers_[rank]->Configure(config, ranks[rank]));
  }
  for (auto& worker : workers_) TANDEM_RETURN_IF_ERROR(worker->StartLoad());
  const Deadline answer = deadline.OrAfter(config.transport.step_timeout + kEpochEndTime);
  absl::Status taken;  // by all of them: each stuck one is killed
  for (auto& worker : workers_) taken.Update(worker->AwaitLoading(answer, deadline, cancelled));
  TANDEM_RETURN_IF_ERROR(taken);
  std::vector<WorkerReady> ready(workers_.size());
  TANDEM_RETURN_IF_ERROR(
      InTurns(deadline, cancelled, [&](size_t rank, Deadline slice) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(ready[rank], workers_[rank]->FinishLoad(slice));
        return absl::OkStatus();
      }));
  TANDEM_ASSIGN_OR_RETURN(num_blocks, AgreeOnBlocks(ready, std::move(num_blocks)));
  for (auto& worker : workers_) TANDEM_RETURN_IF_ERROR(worker->Start(num_blocks));
  TANDEM_RETURN_IF_ERROR(InTurns(deadline, cancelled, [&](size_t rank, Deadline slice) {
    return workers_[rank]->FinishStart(slice);
  }));
  return num_blocks;
}

absl::Status WorkerGroup::InTurns(Deadline deadline, const std::function<bool()>& cancelled,
                                  const WaitForRank& wait) const {
  std::vector<size_t> pending(workers_.size());
  std::iota(pending.begin(), pending.end(), 0);
  while (!pending.empty()) {
    if (cancelled && cancelled()) return absl::CancelledError("stopped while workers load");
    std::vector<size_t> still_pending;
    for (size_t rank : pending) {
      absl::Status answer = wait(rank, deadline.OrAfter(kPollSlice));
      if (answer.ok()) continue;
      const bool waited = absl::IsAborted(answer);  // for others, too long
      if (!waited && !absl::IsDeadlineExceeded(answer)) return answer;
      if (waited) {
        std::vector<size_t> others = pending;
        std::erase(others, rank);
        answer = WithOthers(answer, others, wait, deadline.clock());
        if (!absl::IsAborted(answer)) return answer;
      }
      if (waited || deadline.Passed()) return AtFault(pending, answer, deadline.clock());
      still_pending.push_back(rank);
    }
    pending = std::move(still_pending);
  }
  return absl::OkStatus();
}

absl::Status WorkerGroup::WithOthers(const absl::Status& first, const std::vector<size_t>& others,
                                     const WaitForRank& wait, const Clock& clock) const {
  std::string message(first.message());
  const Deadline deadline = Deadline::After(kVerdictGrace, clock);
  for (const size_t rank : others) {
    const absl::Status answer = wait(rank, deadline);
    if (absl::IsAborted(answer)) {
      absl::StrAppend(&message, "; ", answer.message());
    } else if (!answer.ok() && !absl::IsDeadlineExceeded(answer)) {
      return answer;  // why it was waited for in vain
    }
  }
  return absl::Status(first.code(), message);
}

absl::Status WorkerGroup::AtFault(const std::vector<size_t>& pending, const absl::Status& failed,
                                  const Clock& clock) const {
  for (size_t rank : pending) workers_[rank]->Ping();
  const Deadline deadline = Deadline::After(kPongTime, clock);
  std::vector<std::string> silent, alive;
  for (size_t rank : pending) {
    const bool lives = workers_[rank]->WaitPong(deadline);
    (lives ? alive : silent).push_back(RankName(rank));
    if (!lives) workers_[rank]->Kill();
  }
  if (!silent.empty()) {
    return absl::UnavailableError(absl::StrCat(
        absl::StrJoin(silent, ", "), " shows no sign of life while starting; ", failed.message()));
  }
  if (absl::IsAborted(failed)) return absl::UnavailableError(failed.message());
  return absl::UnavailableError(
      absl::StrCat(absl::StrJoin(alive, ", "), " did not start in time (--load-timeout)"));
}

absl::Status WorkerGroup::Submit(const step::StepDescriptor& step, Deadline deadline) {
  step::Serialize(step, frame_);
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    absl::Status status = workers_[rank]->Submit(frame_, deadline);
    if (status.ok()) continue;
    if (absl::Status health = Health(); !health.ok()) return health;
    return Lost(rank, status);
  }
  in_flight_.push_back({.step_id = step.step_id, .epoch = step.epoch});
  return absl::OkStatus();
}

absl::StatusOr<step::StepResult> WorkerGroup::Collect(Deadline deadline) {
  TANDEM_CHECK(!in_flight_.empty()) << "no step in flight";
  const SubmittedStep step = in_flight_.front();
  in_flight_.pop_front();
  std::vector<Answer> answers(workers_.size());
  bool failed = false;
  size_t num_arrived = 0;
  while (true) {
    for (size_t rank = 0; rank < workers_.size(); ++rank) {
      Answer& answer = answers[rank];
      if (answer.arrived) continue;
      Poll(rank, step, deadline.OrAfter(kPollSlice), answer);
      if (!answer.arrived) continue;
      ++num_arrived;
      if (failed || answer.fault.ok()) continue;
      failed = true;
      deadline = deadline.OrAfter(kVerdictGrace);
    }
    if (num_arrived == workers_.size()) break;
    if (deadline.Passed() || !Health().ok()) {
      failed = true;
      break;
    }
  }
  if (failed) return Verdict(step, answers);
  return std::move(answers[0].result);
}

void WorkerGroup::Poll(size_t rank, const SubmittedStep& step, Deadline deadline, Answer& answer) {
  absl::StatusOr<step::StepResult> result = workers_[rank]->Collect(deadline);
  if (!result.ok()) {
    if (result.status().code() == absl::StatusCode::kDeadlineExceeded) return;
    answer.fault = Lost(rank, result.status());
  } else {
    answer.fault = CheckResult(rank, step, *result);
    if (answer.fault.ok()) NoteTimings(rank, step, result->timings);
    answer.result = *std::move(result);
  }
  answer.arrived = true;
}

void WorkerGroup::NoteTimings(size_t rank, const SubmittedStep& step,
                              const step::StepTimings& timings) {
  if (times_ != nullptr) times_->Add(rank, timings);
  const uint64_t recording = recorder_ == nullptr ? 0 : recorder_->recording();
  if (recording == 0) return;
  recorder_->Add(recording, RankStep{.rank = static_cast<uint32_t>(rank),
                                     .step = step.step_id,
                                     .epoch = step.epoch,
                                     .timings = timings,
                                     .answered = std::chrono::steady_clock::now()});
}

absl::Status WorkerGroup::CheckResult(size_t rank, const SubmittedStep& step,
                                      const step::StepResult& result) const {
  if (result.epoch != step.epoch || result.step_id != step.step_id || result.rank != rank) {
    return absl::UnavailableError(absl::StrCat(
        RankName(rank), " answered as rank ", result.rank, " epoch ", result.epoch.value, " step ",
        result.step_id.value, ", needed epoch ", step.epoch.value, " step ", step.step_id.value));
  }
  if (result.status.ok()) return absl::OkStatus();
  return Lost(rank, Annotate(result.status,
                             absl::StrCat(RankName(rank), " failed in step ", step.step_id.value)));
}

absl::Status WorkerGroup::Verdict(const SubmittedStep& step,
                                  const std::vector<Answer>& answers) const {
  if (absl::Status health = Health(); !health.ok()) return health;
  std::string first_fault;
  std::string silent;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    if (!answers[rank].arrived) {
      workers_[rank]->Kill();
      absl::StrAppend(&silent, silent.empty() ? "" : ", ", RankName(rank));
    } else if (first_fault.empty()) {
      first_fault = std::string(answers[rank].fault.message());
    }
  }
  if (silent.empty()) return absl::UnavailableError(first_fault);
  return absl::UnavailableError(absl::StrCat(silent, " did not answer step ", step.step_id.value,
                                             " in time", first_fault.empty() ? "" : "; ",
                                             first_fault));
}

absl::Status WorkerGroup::Health() const {
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    if (absl::Status status = workers_[rank]->Health(); !status.ok()) return Lost(rank, status);
  }
  return absl::OkStatus();
}

bool WorkerGroup::EndedFromOutside() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->EndedFromOutside(); });
}

absl::Status WorkerGroup::Heartbeat(Duration silence, const Clock& clock) {
  TANDEM_RETURN_IF_ERROR(Health());
  const TimePoint now = clock.Now();
  const Duration interval = silence / kPingsPerSilence;
  const bool stood_still = now - std::exchange(looked_at_, now) > silence / 2;
  const Deadline at_once = Deadline::After(Duration::zero());
  std::vector<size_t> silent;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_[rank]->WaitPong(at_once)) silent.push_back(rank);
  }
  // A ping of the epoch before, which may be unanswered, says nothing about this one.
  if (silent.empty() || !pinged_at_.has_value()) {
    if (pinged_at_.has_value() && now - *pinged_at_ < interval) return absl::OkStatus();
    for (auto& worker : workers_) worker->Ping();
    pinged_at_ = now;
    return absl::OkStatus();
  }
  // It answered the ping before, an interval ago, and may have stopped right after that.
  const Duration patience = silence - interval;
  // After a pause of this process the answers may be there, not read yet.
  if (stood_still) pinged_at_ = std::max(*pinged_at_, now - patience + kPongTime);
  if (now - *pinged_at_ < patience) return absl::OkStatus();
  std::vector<std::string> names;
  for (size_t rank : silent) {
    workers_[rank]->Kill();
    names.push_back(RankName(rank));
  }
  return absl::UnavailableError(absl::StrCat(absl::StrJoin(names, ", "),
                                             " shows no sign of life for ",
                                             absl::FormatDuration(absl::FromChrono(silence))));
}

void WorkerGroup::Abort(const absl::Status& reason) {
  for (auto& worker : workers_) worker->Abort(reason);
}

}  // namespace tandem::coordinator
