// Scheduler: continuous batching. Decides which sequences run in the next step and how many tokens
// each, within one budget of tokens, and owns the waiting and running queues; it computes and sends
// nothing.
//
//   scheduler.Enqueue(sequence);
//   Plan plan = scheduler.Schedule();      // blocks are allocated, sequences admitted
//   scheduler.Advance(plan);               // submitted: its tokens count as scheduled
//   ... the step runs; others may be scheduled and submitted after it ...
//   scheduler.Settle(plan);                // its tokens count as computed, drafts if accepted
//   sequence.tokens.push_back(drawn);
//   scheduler.Finish(sequence);            // at any time
//
// A step may compute tokens that the step before it draws: pending ones. Whether such a token ends
// its sequence is known one step late; the next step is then computed in vain for it, unless the
// end can be foreseen (Sequence::most_tokens). Finish releases blocks at once, even those of steps
// in flight: see docs/decisions/0009-steps-in-a-pipeline.md for why that is safe. A plan's
// sequences must exist until the plan has settled.
//
// Sequences with max_strikes strikes are suspects: after a Rewind each of them in turn is computed
// alone, while all others wait, until what was lost is computed.
//
// First come, first served among equal priorities; each number of a priority is worth some time of
// waiting (Sequence::virtual_arrival_us), so that whatever waits is overtaken for a bounded time.
// What runs is preempted only if a running sequence has no room: its blocks are dropped, its tokens
// kept, and it waits in its place. The victim has the least important priority, of those the fewest
// preemptions before, and of those the fewest tokens to compute again; never the first in the
// order, which so makes progress always, and none starves. A sequence that waits and does not fit
// is passed by max_queue_skips others at most. One whose prompt shares a prefix with a running
// prefill waits until that is computed (PromisedPrefixes). Later ones are admitted meanwhile, but
// wait, too, if it may not be passed any more. Enqueued sequences have passed Admission. A step's
// cost is n log n in running sequences; of waiting ones it looks at a bounded number, and again at
// their cached prefixes when blocks were released. Single-threaded (the engine thread). Sequences
// are borrowed from Enqueue until Finish.
#ifndef TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_H_
#define TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/promised_prefixes.h"
#include "coordinator/scheduler/scheduler_config.h"
#include "coordinator/scheduler/scheduler_stats.h"
#include "coordinator/scheduler/sequence.h"
#include "coordinator/scheduler/step_time_model.h"

namespace tandem::coordinator {

class Scheduler {
 public:
  // `config` is valid; `kv` is borrowed and used only here.
  Scheduler(const SchedulerConfig& config, BlockManager& kv);

  void Enqueue(Sequence& sequence);
  // Empty only if nothing waits or runs, or if all runnable sequences wait for steps in flight.
  // Call Advance before the next call.
  Plan Schedule();
  // The step of `plan` was submitted.
  void Advance(const Plan& plan);
  // The step of `plan`, the oldest in flight, was computed: full blocks become visible to other
  // prompts. Before the drawn tokens are appended. A sequence that has finished since is only no
  // longer in flight.
  void Settle(const Plan& plan);
  // The workers computed the step of `plan` in `time`, without what they waited before it.
  void NoteStepTime(const Plan& plan, Duration time);
  // The workers and the contents of their KV pages are lost, with the steps in flight, whose plans
  // must not be settled: every running sequence waits again, and its tokens are computed anew.
  // `blame`: what the steps in flight computed may be the cause, so their sequences get a strike.
  // Returns the sequence that is the cause beyond doubt, since it was computed alone; null: none.
  Sequence* Rewind(bool blame);
  // Removes a sequence, waiting or running, and releases its blocks.
  void Finish(Sequence& sequence);

  size_t num_running() const { return running_.size(); }
  size_t num_waiting() const { return waiting_.size() + promises_.num_followers(); }
  bool idle() const { return running_.empty() && num_waiting() == 0; }
  SchedulerStats Stats() const;

  // Lists, slots and every block. INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity() const;

 private:
  // The remaining budget of the step being scheduled.
  struct StepBudget {
    uint32_t tokens = 0;
    uint32_t scored_tokens = 0;
    uint32_t pools = 0;
    uint32_t admitted_blocks = 0;
    std::vector<uint32_t> given{};   // tokens by slot
    std::vector<uint32_t> drafts{};  // of those; empty: none of any
    // What the step has so far, all its decodes included; set if its time is limited.
    std::optional<StepLoad> load{};
  };

  // The part of the budget available for the `missing` tokens of `sequence` after the first
  // `begin`.
  uint32_t TokensFor(const Sequence& sequence, uint32_t begin, const StepBudget& budget) const;
  // The load of all that decodes, for a step whose time is limited.
  std::optional<StepLoad> DecodeLoad() const;
  // Of `most` prefill tokens after the first `begin` of a sequence, how many the step has time for.
  uint32_t PrefillInTime(uint32_t begin, uint32_t most, const StepLoad& load) const;
  void ScheduleAll(StepBudget& budget, Plan& plan);
  void TakeTokens(Sequence& sequence, uint32_t num_tokens, StepBudget& budget) const;
  // Takes back the last `num_tokens` of what it was given in this step. Their time stays counted.
  void ReturnTokens(const Sequence& sequence, uint32_t num_tokens, StepBudget& budget) const;
  // Of sequences that need known tokens, whether one could decode while another is in flight.
  bool WouldTakeTurns() const;
  // Whether its next tokens can be computed now: known, or drawn by the last step submitted.
  bool IsReady(const Sequence& sequence) const;
  // Gives tokens to running sequences of one phase, in their order, while the budget lasts.
  void ScheduleRunning(Phase phase, StepBudget& budget, Plan& plan);
  void ScheduleOne(Sequence& sequence, StepBudget& budget, Plan& plan);
  // Whether so few sequences run, and none of them as a suspect, that steps may have drafts.
  bool RunsFew() const;
  // Whether the next step is one of decodes, of so few sequences and with so many free blocks that
  // drafts cost little. It is sent when no step is in flight, since how many drafts are accepted
  // decides what comes next; for the same reason no step follows it before it has settled, except
  // for what arrives meanwhile: other steps may then be sent, and name none of its sequences that
  // have drafts.
  bool MayDraft() const;
  // How many drafts may follow the next `num_tokens` of a sequence before its next snapshot point.
  static uint32_t NumBeforePoint(const Sequence& sequence, uint32_t num_tokens);
  // Shares what is left of max_draft_rows among the sequences with drafts.
  void AddDrafts(StepBudget& budget);
  void AdmitWaiting(StepBudget& budget, Plan& plan);
  enum class Admitted { kYes, kDoesNotFit, kNotInThisStep, kFollows };
  Admitted TryAdmit(Sequence& sequence, StepBudget& budget);
  // What a running sequence is about to compute of another one's tokens: those before `end`, a
  // multiple of the block size.
  struct Offer {
    Sequence* leader = nullptr;
    uint32_t end = 0;
  };
  // The offer of most tokens to `sequence`, which begins with `match`; none if it had better
  // compute them itself.
  std::optional<Offer> BestOffer(const Sequence& sequence, const PrefixMatch& match) const;
  // The end of what `leader` offers to `sequence`, whose first `begin` tokens it has; 0: nothing.
  uint32_t OfferedEnd(const Sequence& leader, const Sequence& sequence, uint32_t begin) const;
  // Whether a sequence of `num_tokens` tokens, of which it has `begin`, is served sooner if it
  // waits for those before `end`. Waiting takes a step or two, in which it could compute the
  // others, so `end` must save half of what it would compute, or what takes a step, and two blocks
  // at least.
  bool IsWorthWaiting(uint32_t begin, uint32_t end, uint32_t num_tokens) const;
  // Those of its tokens that others may wait for.
  static std::span<const TokenId> Promisable(const Sequence& leader);
  // Whether a snapshot of its recurrent state after its first `num_tokens` can be added for others.
  static bool MayAddSnapshotPoint(const Sequence& leader, uint32_t num_tokens);
  // Adds that snapshot, unless it takes one there anyway.
  void KeepStateAt(Sequence& leader, uint32_t num_tokens, StepBudget& budget) const;
  // `sequence` was admitted, or has computed more: what it promises now. Those who waited for no
  // more than it has wait in the queue again.
  void UpdatePromise(Sequence& sequence);
  // It promises nothing any more, and those who wait for it wait in the queue again.
  void BreakPromise(Sequence& sequence);
  void WaitAgain(const std::vector<Sequence*>& followers);
  // A sequence was admitted before the first `num_skipped` that wait. Whether another one may be.
  bool CountSkips(size_t num_skipped);
  bool MayBeSkipped(const Sequence& sequence) const;
  // Allocates blocks for `num_tokens` of `sequence`, preempting others. False if it was preempted
  // itself, or if steps are in flight: then nothing is scheduled until they have settled.
  bool GrowOrPreempt(Sequence& sequence, uint32_t num_tokens, StepBudget& budget, Plan& plan);
  // The running sequence to preempt; of equal ones the latest. The first one only if it is alone.
  Sequence& Victim() const;
  void Preempt(Sequence& victim, StepBudget& budget, Plan& plan);
  void BackToWaiting(Sequence& sequence);
  // The entry's drafts that were not accepted count as computed no more.
  void TakeBack(const PlanEntry& entry);
  // The step of a suspect alone, or none while steps are in flight. False: there is no suspect.
  bool ScheduleSuspect(StepBudget& budget, Plan& plan);
  bool IsSuspect(const Sequence& sequence) const {
    return sequence.num_strikes >= config_.max_strikes;
  }
  void CollectEntries(const StepBudget& budget, Plan& plan);
  // Sets the snapshots that the entry's step loads and saves.
  void AddSnapshots(PlanEntry& entry);
  void LeaveRunning(Sequence& sequence);
  // Takes its strikes back: it is no suspect.
  void Clear(Sequence& sequence);
  absl::Status CheckOrder() const;
  absl::Status CheckFollowers() const;

  const SchedulerConfig config_;
  BlockManager& kv_;
  // All three in the order of ServedBefore.
  std::deque<Sequence*> waiting_;  // without those that wait for a prefix
  std::vector<Sequence*> running_;
  std::vector<Sequence*> suspects_;  // not computed since the last Rewind
  PromisedPrefixes promises_;        // and who waits for them
  uint64_t last_handle_ = 0;         // enqueued
  // Those that need known tokens wait for one of them in flight, so that they continue in one step
  // and not by turns; never in two plans running.
  bool holds_back_ = false;
  bool isolating_ = false;  // at most one sequence runs, a suspect or one until now
  std::vector<uint32_t> free_slots_;
  uint32_t num_in_flight_ = 0;  // steps that were submitted and have not settled
  uint64_t num_submitted_ = 0;  // steps
  SchedulerStats stats_;        // its counters
  StepTimeModel times_;         // learns only with SchedulerConfig::target_itl
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_H_
