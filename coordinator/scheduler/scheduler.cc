#include "coordinator/scheduler/scheduler.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/step/limits.h"
#include "coordinator/scheduler/queue_order.h"

namespace tandem::coordinator {
namespace {

// How many waiting sequences that do not fit a step looks past.
constexpr size_t kMostPassed = 8;
// How many a step lets wait for a prefix: each is compared with its leader.
constexpr size_t kMostFollow = 64;

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, BlockManager& kv) : config_(config), kv_(kv) {
  TANDEM_CHECK_OK(config_.Validate());
  TANDEM_CHECK(config_.max_strikes > 0);
  for (uint32_t slot = config_.max_num_seqs; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

void Scheduler::Enqueue(Sequence& sequence) {
  TANDEM_CHECK(sequence.state == SequenceState::kNew);
  TANDEM_CHECK(last_handle_ < sequence.handle) << "handles must rise";
  last_handle_ = sequence.handle;
  sequence.state = SequenceState::kWaiting;
  waiting_.insert(PlaceInOrder(waiting_, sequence), &sequence);
  ++stats_.requests;
}

Plan Scheduler::Schedule() {
  Plan plan;
  const bool drafts = MayDraft();
  if (drafts && num_in_flight_ > 0) return plan;
  StepBudget budget{.tokens = config_.max_num_batched_tokens,
                    .scored_tokens = config_.max_scored_tokens,
                    .pools = config_.max_pools,
                    .admitted_blocks = step::kMaxAdmittedBlocks,
                    .given = std::vector<uint32_t>(config_.max_num_seqs)};
  holds_back_ = !holds_back_ && WouldTakeTurns();
  budget.load = DecodeLoad();
  if (!isolating_ || !ScheduleSuspect(budget, plan)) ScheduleAll(budget, plan);
  if (drafts) AddDrafts(budget);
  CollectEntries(budget, plan);
  plan.may_draft = RunsFew();
  TANDEM_CHECK(!plan.entries.empty() || idle() || num_in_flight_ > 0)
      << running_.size() << " running and " << waiting_.size() << " waiting make no step";
  return plan;
}

void Scheduler::ScheduleAll(StepBudget& budget, Plan& plan) {
  if (config_.policy == SchedulingPolicy::kDecodeFirst) {
    ScheduleRunning(Phase::kDecode, budget, plan);
    ScheduleRunning(Phase::kPrefill, budget, plan);
    AdmitWaiting(budget, plan);
  } else {
    ScheduleRunning(Phase::kPrefill, budget, plan);
    AdmitWaiting(budget, plan);
    ScheduleRunning(Phase::kDecode, budget, plan);
  }
}

uint32_t Scheduler::TokensFor(const Sequence& sequence, uint32_t begin,
                              const StepBudget& budget) const {
  const uint32_t missing = sequence.num_tokens() + sequence.num_pending - begin;
  uint32_t most = std::min({missing, config_.chunked_prefill_size, budget.tokens});
  if (budget.load.has_value() && sequence.phase() == Phase::kPrefill) {
    most = PrefillInTime(begin, most, *budget.load);
  }
  most = sequence.snapshot_points.Fit(begin, most);
  if (budget.pools == 0 && sequence.Pools(begin, most)) {
    return std::max(begin, sequence.pooled_from) - begin;
  }
  if (sequence.NumScored(begin, most) <= budget.scored_tokens) return most;
  return std::max(begin, sequence.scored_from) - begin + budget.scored_tokens;
}

void Scheduler::TakeTokens(Sequence& sequence, uint32_t num_tokens, StepBudget& budget) const {
  budget.given[sequence.slot] = num_tokens;
  budget.tokens -= num_tokens;
  budget.scored_tokens -= sequence.NumScored(sequence.num_scheduled, num_tokens);
  if (budget.load.has_value() && sequence.phase() == Phase::kPrefill) {
    budget.load->AddPrefill(sequence.num_scheduled, num_tokens);
  }
  budget.pools -= sequence.Pools(sequence.num_scheduled, num_tokens) ? 1 : 0;
}

void Scheduler::ReturnTokens(const Sequence& sequence, uint32_t num_tokens,
                             StepBudget& budget) const {
  const uint32_t given = budget.given[sequence.slot], left = given - num_tokens;
  const uint32_t begin = sequence.num_scheduled;
  budget.given[sequence.slot] = left;
  budget.tokens += num_tokens;
  budget.scored_tokens += sequence.NumScored(begin, given) - sequence.NumScored(begin, left);
  if (sequence.Pools(begin, given) && !sequence.Pools(begin, left)) ++budget.pools;
}

bool Scheduler::WouldTakeTurns() const {
  bool one_is_ready = false, another_is_pending = false;
  for (const Sequence* sequence : running_) {
    if (!sequence->needs_known_tokens) continue;
    const bool is_pending = sequence->num_pending > 0;
    another_is_pending |= is_pending;
    one_is_ready |= !is_pending && sequence->phase() == Phase::kDecode;
  }
  return one_is_ready && another_is_pending;
}

bool Scheduler::IsReady(const Sequence& sequence) const {
  if (sequence.needs_known_tokens && sequence.phase() == Phase::kDecode && holds_back_)
    return false;
  if (sequence.num_pending == 0) return true;
  if (sequence.is_drafting) return false;
  if (sequence.needs_known_tokens || sequence.last_drawn_by != num_submitted_) return false;
  const uint32_t most = std::min(sequence.most_tokens, config_.max_model_len);
  return sequence.num_tokens() + sequence.num_pending < most;
}

void Scheduler::ScheduleRunning(Phase phase, StepBudget& budget, Plan& plan) {
  for (auto next = running_.begin(); next != running_.end() && budget.tokens > 0;) {
    Sequence& sequence = **next;
    if (sequence.phase() == phase) ScheduleOne(sequence, budget, plan);
    next = PlaceAfter(running_, sequence);  // what was preempted has left the list
  }
}

void Scheduler::ScheduleOne(Sequence& sequence, StepBudget& budget, Plan& plan) {
  if (budget.given[sequence.slot] > 0 || !IsReady(sequence)) return;
  const uint32_t num_tokens = TokensFor(sequence, sequence.num_scheduled, budget);
  if (num_tokens == 0) return;
  if (!GrowOrPreempt(sequence, sequence.num_scheduled + num_tokens, budget, plan)) return;
  TakeTokens(sequence, num_tokens, budget);
}

bool Scheduler::GrowOrPreempt(Sequence& sequence, uint32_t num_tokens, StepBudget& budget,
                              Plan& plan) {
  while (!kv_.Grow(sequence.blocks, num_tokens)) {
    if (num_in_flight_ > 0) {
      std::ranges::fill(budget.given, 0);
      budget.tokens = 0;
      return false;
    }
    Sequence& victim = Victim();
    Preempt(victim, budget, plan);
    if (&victim == &sequence) return false;
  }
  return true;
}

Sequence& Scheduler::Victim() const {
  const auto cost = [this](const Sequence& sequence) {
    const uint32_t shared = std::min(kv_.SharedTokens(sequence.blocks), sequence.FirstWanted());
    return std::tuple(-int64_t{sequence.priority}, sequence.num_preempted,
                      sequence.num_computed - std::min(sequence.num_computed, shared));
  };
  Sequence* victim = running_.back();
  for (size_t i = running_.size() - 1; i > 1; --i) {
    if (cost(*running_[i - 1]) < cost(*victim)) victim = running_[i - 1];
  }
  return *victim;
}

void Scheduler::Preempt(Sequence& victim, StepBudget& budget, Plan& plan) {
  ReturnTokens(victim, budget.given[victim.slot], budget);
  BackToWaiting(victim);
  ++victim.num_preempted;
  ++stats_.preemptions;
  plan.preempted.push_back(victim.handle);
}

void Scheduler::AdmitWaiting(StepBudget& budget, Plan& plan) {
  // A step that preempted admits no new sequences.
  if (!plan.preempted.empty()) return;
  size_t place = 0;  // those before it do not fit
  size_t num_follow = 0;
  while (place < waiting_.size() && place <= kMostPassed && budget.tokens > 0 &&
         !free_slots_.empty()) {
    const auto next = waiting_.begin() + static_cast<std::ptrdiff_t>(place);
    switch (TryAdmit(**next, budget)) {
      case Admitted::kYes:
        waiting_.erase(next);
        if (!CountSkips(place)) return;
        break;
      case Admitted::kDoesNotFit:
        if (!MayBeSkipped(**next)) return;
        ++place;
        break;
      case Admitted::kFollows:
        waiting_.erase(next);
        if (++num_follow == kMostFollow) return;
        break;
      case Admitted::kNotInThisStep:
        return;
    }
  }
}

bool Scheduler::CountSkips(size_t num_skipped) {
  bool may_go_on = true;
  for (size_t i = 0; i < num_skipped; ++i) {
    ++waiting_[i]->num_skips;
    may_go_on &= MayBeSkipped(*waiting_[i]);
  }
  return may_go_on;
}

bool Scheduler::MayBeSkipped(const Sequence& sequence) const {
  return !sequence.was_admitted && sequence.num_skips < config_.max_queue_skips;
}

Scheduler::Admitted Scheduler::TryAdmit(Sequence& sequence, StepBudget& budget) {
  // No block was released since it did not fit, and no more of its prefix is cached.
  if (sequence.refused_at == kv_.num_returns() &&
      !(sequence.missing_block.has_value() && kv_.IsCached(*sequence.missing_block))) {
    return Admitted::kDoesNotFit;
  }
  const std::span<const TokenId> shareable = sequence.Shareable();
  const PrefixMatch match = kv_.Match(shareable, sequence.prefix_hashes);
  if (const std::optional<Offer> offer = BestOffer(sequence, match); offer.has_value()) {
    KeepStateAt(*offer->leader, offer->end, budget);
    if (!MayBeSkipped(sequence)) return Admitted::kNotInThisStep;
    promises_.Follow(sequence, *offer->leader, offer->end);
    return Admitted::kFollows;
  }
  sequence.snapshot_points = SnapshotPoints::Of(kv_.config(), sequence.prompt_len, match);
  const uint32_t num_tokens = TokensFor(sequence, match.num_tokens, budget);
  if (num_tokens == 0) return Admitted::kNotInThisStep;
  const uint32_t num_blocks = kv_.config().BlocksFor(match.num_tokens + num_tokens) *
                              static_cast<uint32_t>(kv_.config().groups.size());
  const bool is_first = budget.admitted_blocks == step::kMaxAdmittedBlocks;
  if (num_blocks > budget.admitted_blocks && !is_first) return Admitted::kNotInThisStep;
  // All its tokens must fit now, although blocks are allocated chunk by chunk: fewer preemptions
  // during prefill.
  if (!kv_.Start(sequence.blocks, match, match.num_tokens + num_tokens, sequence.num_tokens(),
                 config_.MostStepTokens())) {
    sequence.refused_at = kv_.num_returns();
    sequence.missing_block = match.missing;
    return Admitted::kDoesNotFit;
  }
  if (!std::exchange(sequence.was_admitted, true)) sequence.num_cached = match.num_tokens;
  if (sequence.FirstWanted() > 0 && kv_.config().enable_prefix_cache)
    stats_.queried_tokens += static_cast<int64_t>(shareable.size());
  stats_.cached_tokens += match.num_tokens;
  sequence.state = SequenceState::kRunning;
  sequence.num_computed = sequence.num_scheduled = match.num_tokens;
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  TakeTokens(sequence, num_tokens, budget);
  budget.admitted_blocks -= std::min(num_blocks, budget.admitted_blocks);
  running_.insert(PlaceInOrder(running_, sequence), &sequence);
  sequence.num_awaited = 0;
  UpdatePromise(sequence);
  return Admitted::kYes;
}

void Scheduler::CollectEntries(const StepBudget& budget, Plan& plan) {
  for (Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    for (Sequence* sequence : running_) {
      const uint32_t num_tokens = budget.given[sequence->slot];
      if (num_tokens == 0 || sequence->phase() != phase) continue;
      const uint32_t num_drafts = budget.drafts.empty() ? 0 : budget.drafts[sequence->slot];
      plan.entries.push_back(
          {.sequence = sequence,
           .begin = sequence->num_scheduled,
           .num_tokens = num_tokens,
           .phase = phase,
           .samples = sequence->generates && num_tokens - num_drafts == sequence->num_missing(),
           .num_drafts = num_drafts,
           .refers = sequence->num_scheduled + num_tokens - num_drafts > sequence->num_tokens()});
      AddSnapshots(plan.entries.back());
      plan.num_tokens += num_tokens;
    }
  }
}

void Scheduler::AddSnapshots(PlanEntry& entry) {
  Sequence& sequence = *entry.sequence;
  const bool is_first = sequence.num_blocks_sent == 0;
  if (is_first || sequence.restores_state) {
    entry.load_snapshot = sequence.blocks.loaded_snapshot();
  }
  if (entry.num_drafts > 0 && sequence.blocks.saved_state() != kNoBlock) {
    entry.save_snapshot = sequence.blocks.saved_state();
    entry.save_after = entry.num_tokens - entry.num_drafts;
    return;
  }
  const uint32_t point = sequence.snapshot_points.After(entry.begin);
  if (point > std::min(entry.end(), sequence.unshared_from)) return;
  entry.save_snapshot = kv_.TakeSnapshot(sequence.blocks, point);
  if (entry.save_snapshot != kv::kNoSnapshot) entry.save_after = point - entry.begin;
}

void Scheduler::Advance(const Plan& plan) {
  ++num_in_flight_;
  ++num_submitted_;
  for (const PlanEntry& entry : plan.entries) {
    Sequence& sequence = *entry.sequence;
    TANDEM_CHECK(sequence.num_scheduled == entry.begin);
    sequence.num_scheduled = entry.end();
    sequence.num_blocks_sent = sequence.blocks.num_blocks();
    sequence.restores_state = false;
    ++sequence.num_in_flight;
    if (!entry.samples) continue;
    sequence.num_pending += entry.num_sampled();
    sequence.is_drafting = entry.num_drafts > 0;
    sequence.last_drawn_by = num_submitted_;
  }
}

void Scheduler::Settle(const Plan& plan) {
  TANDEM_CHECK(num_in_flight_ > 0) << "no step is in flight";
  --num_in_flight_;
  for (const PlanEntry& entry : plan.entries) {
    Sequence& sequence = *entry.sequence;
    --sequence.num_in_flight;
    if (sequence.state == SequenceState::kFinished) continue;
    TANDEM_CHECK(sequence.num_computed == entry.begin);
    sequence.num_computed = entry.end();
    sequence.num_pending -= entry.num_sampled();
    if (entry.num_drafts > 0) TakeBack(entry);
    if (sequence.num_strikes > 0 && sequence.num_computed >= sequence.lost_end) Clear(sequence);
    kv_.Commit(sequence.blocks, sequence.Published(), sequence.num_computed);
    if (sequence.restores_state) kv_.RestoreState(sequence.blocks);
    if (entry.num_drafts > 0) kv_.DropSavedState(sequence.blocks);
    UpdatePromise(sequence);
  }
}

Sequence* Scheduler::Rewind(bool blame) {
  Sequence* culprit = nullptr;
  for (Sequence* sequence : running_) {
    if (!blame || sequence->num_in_flight == 0) continue;
    if (isolating_ && IsSuspect(*sequence)) culprit = sequence;
    ++sequence->num_strikes;
    sequence->may_draft = false;  // drafts may be the cause, and are not computed while it is alone
    sequence->lost_end = std::max(sequence->lost_end, sequence->num_scheduled);
  }
  while (!running_.empty()) BackToWaiting(*running_.back());
  suspects_.clear();
  for (Sequence* sequence : waiting_) {
    sequence->num_in_flight = 0;
    sequence->refused_at = UINT64_MAX;
    sequence->num_awaited = 0;
    if (IsSuspect(*sequence)) suspects_.push_back(sequence);
  }
  isolating_ = !suspects_.empty();
  num_in_flight_ = 0;
  kv_.Forget();
  return culprit;
}

void Scheduler::BackToWaiting(Sequence& sequence) {
  LeaveRunning(sequence);
  sequence.state = SequenceState::kWaiting;
  waiting_.insert(PlaceInOrder(waiting_, sequence), &sequence);
}

bool Scheduler::ScheduleSuspect(StepBudget& budget, Plan& plan) {
  if (num_in_flight_ == 0) {
    if (!running_.empty() && !IsSuspect(*running_.front())) BackToWaiting(*running_.front());
    if (running_.empty()) {
      isolating_ = !suspects_.empty();
      if (!isolating_) return false;
      Sequence& suspect = *suspects_.front();
      const Admitted admitted = TryAdmit(suspect, budget);
      TANDEM_CHECK(admitted == Admitted::kYes)
          << "sequence " << suspect.handle << " does not fit alone";
      waiting_.erase(FindInOrder(waiting_, suspect));
    }
  }
  if (running_.empty() || !IsSuspect(*running_.front())) return true;
  ScheduleRunning(Phase::kDecode, budget, plan);
  ScheduleRunning(Phase::kPrefill, budget, plan);
  return true;
}

void Scheduler::Finish(Sequence& sequence) {
  if (sequence.state == SequenceState::kRunning) {
    // Accepted drafts became tokens after their step had settled.
    if (sequence.num_accepted > 0) {
      // Not what the last row reads: it may not have been finite.
      kv_.Commit(sequence.blocks, sequence.Published(),
                 std::min(sequence.num_computed, sequence.num_tokens() - 1));
    }
    LeaveRunning(sequence);
  } else if (sequence.leader != nullptr) {
    promises_.Leave(sequence);
  } else if (sequence.state == SequenceState::kWaiting) {
    waiting_.erase(FindInOrder(waiting_, sequence));
  }
  sequence.state = SequenceState::kFinished;
  if (IsSuspect(sequence)) Clear(sequence);
}

void Scheduler::Clear(Sequence& sequence) {
  if (IsSuspect(sequence)) suspects_.erase(FindInOrder(suspects_, sequence));
  sequence.num_strikes = sequence.lost_end = 0;
}

SchedulerStats Scheduler::Stats() const {
  SchedulerStats stats = stats_;
  stats.running = static_cast<int64_t>(running_.size());
  stats.waiting = static_cast<int64_t>(num_waiting());
  return stats;
}

void Scheduler::LeaveRunning(Sequence& sequence) {
  running_.erase(FindInOrder(running_, sequence));
  BreakPromise(sequence);
  kv_.Release(sequence.blocks);
  free_slots_.push_back(sequence.slot);
  sequence.num_computed = sequence.num_scheduled = sequence.num_blocks_sent = 0;
  sequence.num_pending = sequence.again_end = 0;
  sequence.is_drafting = sequence.restores_state = false;
  sequence.unshared_from = UINT32_MAX;  // it described the blocks that were just released
}

}  // namespace tandem::coordinator
