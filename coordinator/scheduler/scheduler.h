// Scheduler: continuous batching. Decides which sequences run in the next step and how many tokens
// each, within one budget of tokens, and owns the order of waiting and running; it computes nothing
// and sends nothing.
//
//   scheduler.Enqueue(sequence);
//   Plan plan = scheduler.Schedule();      // blocks are allocated, sequences marked
//   ... the step runs ...
//   scheduler.Commit(plan);                // its tokens count as computed
//   sequence.tokens.push_back(drawn);
//   scheduler.Finish(sequence);            // at any time between steps
//
// First come, first served: whoever runs arrived before whoever waits, and only the latest arrival
// is ever preempted (its blocks are dropped, its tokens kept, and it waits at the front). So the
// oldest sequence always moves on and nobody starves. What is enqueued has passed Admission. A
// step's cost is linear in running sequences, never in waiting ones or in blocks. Single-threaded
// (the engine thread). Sequences are borrowed from Enqueue until Finish.
#ifndef TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_H_
#define TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/scheduler_config.h"
#include "coordinator/scheduler/sequence.h"

namespace tandem::coordinator {

class Scheduler {
 public:
  // `config` is valid; `kv` is borrowed and used by nobody else.
  Scheduler(const SchedulerConfig& config, BlockManager& kv);

  void Enqueue(Sequence& sequence);
  // Empty only when nothing waits or runs. Commit, or Finish of every sequence, comes before the
  // next call.
  Plan Schedule();
  // The step of `plan` was computed. Before the drawn tokens are appended.
  void Commit(const Plan& plan);
  // Takes a sequence out, wherever it stands, and returns its blocks.
  void Finish(Sequence& sequence);

  size_t num_running() const { return running_.size(); }
  size_t num_waiting() const { return waiting_.size(); }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  int64_t num_preemptions() const { return num_preemptions_; }

  // Lists, slots and every block. INTERNAL saying what does not agree.
  absl::Status CheckIntegrity() const;

 private:
  // What the step has left for the next `missing` tokens of `sequence`.
  uint32_t TokensFor(const Sequence& sequence, uint32_t missing) const;
  void TakeBudget(Sequence& sequence, uint32_t num_tokens);
  // Gives tokens to running sequences of one phase, oldest first, while the budget lasts.
  void ScheduleRunning(Phase phase, Plan& plan);
  void AdmitWaiting(Plan& plan);
  bool TryAdmit(Sequence& sequence);
  // Makes room for `num_tokens` of `sequence`, at the cost of later arrivals. False when it was
  // itself the latest.
  bool GrowOrPreempt(Sequence& sequence, uint32_t num_tokens, Plan& plan);
  void PreemptLatest(Plan& plan);
  void CollectEntries(Plan& plan) const;
  void LeaveRunning(Sequence& sequence);
  absl::Status CheckOrder() const;

  const SchedulerConfig config_;
  BlockManager& kv_;
  std::deque<Sequence*> waiting_;   // by arrival
  std::vector<Sequence*> running_;  // by arrival, all before waiting_
  std::vector<uint32_t> free_slots_;
  uint32_t budget_tokens_ = 0;  // of the step being scheduled, as the next
  uint32_t budget_scored_tokens_ = 0;
  int64_t num_preemptions_ = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_H_
