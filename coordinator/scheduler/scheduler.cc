#include "coordinator/scheduler/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

// Where `sequence` stands in a list ordered by arrival.
template <typename List>
auto FindByArrival(List& list, const Sequence& sequence) {
  auto place = std::lower_bound(
      list.begin(), list.end(), sequence.arrival,
      [](const Sequence* other, uint64_t arrival) { return other->arrival < arrival; });
  TANDEM_CHECK(place != list.end() && *place == &sequence)
      << "sequence " << sequence.arrival << " is not where its state says";
  return place;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, BlockManager& kv) : config_(config), kv_(kv) {
  TANDEM_CHECK_OK(config_.Validate());
  for (uint32_t slot = config_.max_num_seqs; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

void Scheduler::Enqueue(Sequence& sequence) {
  TANDEM_CHECK(sequence.state == SequenceState::kNew);
  const Sequence* last = !waiting_.empty()   ? waiting_.back()
                         : !running_.empty() ? running_.back()
                                             : nullptr;
  TANDEM_CHECK(last == nullptr || last->arrival < sequence.arrival) << "arrivals must rise";
  sequence.state = SequenceState::kWaiting;
  waiting_.push_back(&sequence);
}

Plan Scheduler::Schedule() {
  Plan plan;
  budget_tokens_ = config_.max_num_batched_tokens;
  budget_scored_tokens_ = config_.max_scored_tokens;
  if (config_.policy == SchedulingPolicy::kDecodeFirst) {
    ScheduleRunning(Phase::kDecode, plan);
    ScheduleRunning(Phase::kPrefill, plan);
    AdmitWaiting(plan);
  } else {
    ScheduleRunning(Phase::kPrefill, plan);
    AdmitWaiting(plan);
    ScheduleRunning(Phase::kDecode, plan);
  }
  CollectEntries(plan);
  TANDEM_CHECK(!plan.entries.empty() || idle())
      << running_.size() << " running and " << waiting_.size() << " waiting make no step";
  return plan;
}

uint32_t Scheduler::TokensFor(const Sequence& sequence, uint32_t missing) const {
  const uint32_t most = std::min({missing, config_.chunked_prefill_size, budget_tokens_});
  return sequence.is_scored() ? std::min(most, budget_scored_tokens_) : most;
}

void Scheduler::TakeBudget(Sequence& sequence, uint32_t num_tokens) {
  sequence.num_scheduled = num_tokens;
  budget_tokens_ -= num_tokens;
  if (sequence.is_scored()) budget_scored_tokens_ -= num_tokens;
}

void Scheduler::ScheduleRunning(Phase phase, Plan& plan) {
  for (size_t i = 0; i < running_.size() && budget_tokens_ > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.phase() != phase || sequence.num_scheduled > 0) continue;
    const uint32_t num_tokens = TokensFor(sequence, sequence.num_missing());
    if (num_tokens == 0) continue;
    if (!GrowOrPreempt(sequence, sequence.num_computed + num_tokens, plan)) return;
    TakeBudget(sequence, num_tokens);
  }
}

bool Scheduler::GrowOrPreempt(Sequence& sequence, uint32_t num_tokens, Plan& plan) {
  while (!kv_.Grow(sequence.blocks, num_tokens)) {
    const bool is_latest = running_.back() == &sequence;
    PreemptLatest(plan);
    if (is_latest) return false;
  }
  return true;
}

void Scheduler::PreemptLatest(Plan& plan) {
  Sequence& latest = *running_.back();
  budget_tokens_ += latest.num_scheduled;
  if (latest.is_scored()) budget_scored_tokens_ += latest.num_scheduled;
  LeaveRunning(latest);
  latest.state = SequenceState::kWaiting;
  latest.num_computed = 0;
  ++latest.num_preemptions;
  ++num_preemptions_;
  waiting_.push_front(&latest);
  plan.preempted.push_back(&latest);
}

void Scheduler::AdmitWaiting(Plan& plan) {
  // A step that had to take blocks away has none for newcomers.
  if (!plan.preempted.empty()) return;
  while (!waiting_.empty() && budget_tokens_ > 0 && !free_slots_.empty()) {
    if (!TryAdmit(*waiting_.front())) return;
    waiting_.pop_front();
  }
}

bool Scheduler::TryAdmit(Sequence& sequence) {
  // Nothing became free since it did not fit.
  if (sequence.refused_at == kv_.num_returns()) return false;
  const PrefixMatch match = sequence.scores_prompt
                                ? PrefixMatch{}
                                : kv_.Match(sequence.tokens, sequence.prefix_hashes);
  const uint32_t num_tokens = TokensFor(sequence, sequence.num_tokens() - match.num_tokens);
  if (num_tokens == 0) return false;
  // All its tokens must find room now, although blocks are allocated chunk by chunk: fewer are
  // preempted half-way.
  if (!kv_.Start(sequence.blocks, match, match.num_tokens + num_tokens, sequence.num_tokens(),
                 config_.MostStepTokens())) {
    sequence.refused_at = kv_.num_returns();
    return false;
  }
  if (sequence.num_preemptions == 0) sequence.num_cached = match.num_tokens;
  sequence.state = SequenceState::kRunning;
  sequence.num_computed = match.num_tokens;
  TakeBudget(sequence, num_tokens);
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  running_.push_back(&sequence);
  return true;
}

void Scheduler::CollectEntries(Plan& plan) const {
  for (Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    for (Sequence* sequence : running_) {
      if (sequence->num_scheduled == 0 || sequence->phase() != phase) continue;
      plan.entries.push_back({.sequence = sequence,
                              .num_tokens = sequence->num_scheduled,
                              .phase = phase,
                              .samples = sequence->num_scheduled == sequence->num_missing()});
      plan.num_tokens += sequence->num_scheduled;
    }
  }
}

void Scheduler::Commit(const Plan& plan) {
  for (const PlanEntry& entry : plan.entries) {
    Sequence& sequence = *entry.sequence;
    TANDEM_CHECK(sequence.num_scheduled == entry.num_tokens);
    sequence.num_computed += entry.num_tokens;
    sequence.num_scheduled = 0;
    kv_.Commit(sequence.blocks, sequence.tokens, sequence.num_computed);
  }
}

void Scheduler::Finish(Sequence& sequence) {
  if (sequence.state == SequenceState::kRunning) {
    LeaveRunning(sequence);
  } else if (sequence.state == SequenceState::kWaiting) {
    waiting_.erase(FindByArrival(waiting_, sequence));
  }
  sequence.state = SequenceState::kFinished;
}

void Scheduler::LeaveRunning(Sequence& sequence) {
  running_.erase(FindByArrival(running_, sequence));
  kv_.Release(sequence.blocks);
  free_slots_.push_back(sequence.slot);
  sequence.num_scheduled = 0;
}

absl::Status Scheduler::CheckOrder() const {
  const Sequence* previous = nullptr;
  const auto check = [&](const Sequence* sequence, SequenceState state) {
    const bool rises = previous == nullptr || previous->arrival < sequence->arrival;
    previous = sequence;
    if (rises && sequence->state == state) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("sequence ", sequence->arrival, " is in the wrong place or state"));
  };
  for (const Sequence* sequence : running_) {
    TANDEM_RETURN_IF_ERROR(check(sequence, SequenceState::kRunning));
  }
  for (const Sequence* sequence : waiting_) {
    TANDEM_RETURN_IF_ERROR(check(sequence, SequenceState::kWaiting));
    if (!sequence->blocks.empty()) {
      return absl::InternalError(
          absl::StrCat("sequence ", sequence->arrival, " waits and holds blocks"));
    }
  }
  return absl::OkStatus();
}

absl::Status Scheduler::CheckIntegrity() const {
  TANDEM_RETURN_IF_ERROR(CheckOrder());
  std::vector<bool> slot_seen(config_.max_num_seqs, false);
  std::vector<uint32_t> slots = free_slots_;
  std::vector<const SequenceBlocks*> live;
  for (const Sequence* sequence : running_) {
    slots.push_back(sequence->slot);
    live.push_back(&sequence->blocks);
    TANDEM_RETURN_IF_ERROR(
        Annotate(kv_.CheckWindow(sequence->blocks, sequence->num_computed,
                                 sequence->num_computed + sequence->num_scheduled),
                 absl::StrCat("sequence ", sequence->arrival)));
  }
  for (uint32_t slot : slots) {
    if (slot >= slot_seen.size() || slot_seen[slot]) {
      return absl::InternalError(absl::StrCat("slot ", slot, " is given twice or out of range"));
    }
    slot_seen[slot] = true;
  }
  if (slots.size() != slot_seen.size()) {
    return absl::InternalError(
        absl::StrCat(slots.size(), " slots in all, ", slot_seen.size(), " expected"));
  }
  return kv_.CheckIntegrity(live);
}

}  // namespace tandem::coordinator
