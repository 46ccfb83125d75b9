// Plan: the scheduler's decision for one step. A value; the sequences of its entries are borrowed
// and outlive the step. A preempted sequence may end before the step does, so it is named only.
#ifndef TANDEM_COORDINATOR_SCHEDULER_PLAN_H_
#define TANDEM_COORDINATOR_SCHEDULER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/kv/snapshots.h"
#include "coordinator/scheduler/sequence.h"

namespace tandem::coordinator {

struct PlanEntry {
  Sequence* sequence = nullptr;
  uint32_t begin = 0;       // the first token that the step computes
  uint32_t num_tokens = 0;  // from `begin` on
  Phase phase = Phase::kPrefill;
  // True when the step computes the sequence's last token, and so the next one is sampled, if it
  // generates.
  bool samples = false;
  // How many of its last tokens are the sequence's first drafts. With d of them, d + 1 tokens are
  // sampled: those after the sequence's last token and after each draft.
  uint32_t num_drafts = 0;
  // For Settle: how many of them are what was sampled in their place, from the first on.
  uint32_t num_accepted = 0;
  // True when the last token is pending: the step before draws it.
  bool refers = false;
  // Of the recurrent state: see step::SequenceEntry.
  kv::SnapshotId load_snapshot = kv::kNoSnapshot;
  kv::SnapshotId save_snapshot = kv::kNoSnapshot;
  uint32_t save_after = 0;

  uint32_t end() const { return begin + num_tokens; }
  uint32_t num_sampled() const { return samples ? num_drafts + 1 : 0; }
  bool operator==(const PlanEntry&) const = default;
};

struct Plan {
  std::vector<PlanEntry> entries;   // decodes first, then prefills, each in order
  uint32_t num_tokens = 0;          // of all entries
  std::vector<uint64_t> preempted;  // handles of what made room and waits again
  // So little runs that steps may have drafts: how right guesses are is worth knowing.
  bool may_draft = false;
  bool operator==(const Plan&) const = default;
  // "decode 3+1* 6+1+2 prefill 4+512 preempted 5": handle + tokens, * if the last one is pending,
  // + drafts.
  std::string DebugString() const;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_PLAN_H_
