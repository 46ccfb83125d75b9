// Scheduler's drafts: which steps have them, whose they are, and what becomes of rejected ones.
#include <algorithm>

#include "common/base/check.h"
#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {
namespace {

bool HasDrafts(const Sequence* sequence) {
  return sequence->may_draft && !sequence->drafts.empty() &&
         sequence->num_tokens() + sequence->num_pending + 1 < sequence->most_tokens;
}

}  // namespace

bool Scheduler::RunsFew() const {
  if (config_.MostStepTokens() < 2 || isolating_) return false;
  // With fewer than a draft for each sequence, overlap is worth more.
  return 2 * running_.size() <= config_.MostDraftRows();
}

bool Scheduler::MayDraft() const {
  if (!RunsFew()) return false;
  // What waits for more than a slot needs the blocks.
  if (!waiting_.empty() && !free_slots_.empty()) return false;
  const auto has_room = [](const Sequence* sequence) {
    return HasDrafts(sequence) && NumBeforePoint(*sequence, sequence->num_missing()) > 0;
  };
  const bool only_decodes = std::ranges::all_of(
      running_, [](const Sequence* sequence) { return sequence->phase() == Phase::kDecode; });
  if (!only_decodes) return false;
  if (std::ranges::any_of(running_, &Sequence::is_drafting)) return true;
  if (kv_.config().snapshots.has_value() && !kv_.HasFreeSnapshot()) return false;
  return std::ranges::any_of(running_, has_room) &&
         kv_.HasSpare(static_cast<uint32_t>(running_.size()) + config_.MostDraftRows());
}

// A snapshot for the prefix cache can't be taken after a draft that may be wrong.
uint32_t Scheduler::NumBeforePoint(const Sequence& sequence, uint32_t num_tokens) {
  const uint32_t point = sequence.snapshot_points.After(sequence.num_scheduled);
  return point - std::min(point, sequence.num_scheduled + num_tokens + 1);
}

void Scheduler::AddDrafts(StepBudget& budget) {
  uint32_t left = config_.MostDraftRows();
  for (const Sequence* sequence : running_) {
    left -= std::min(left, std::max(budget.given[sequence->slot], 1u));
  }
  left = std::min(left, budget.tokens);
  auto num_drafters = static_cast<uint32_t>(std::ranges::count_if(running_, HasDrafts));
  budget.drafts.assign(config_.max_num_seqs, 0);
  for (Sequence* sequence : running_) {
    if (!HasDrafts(sequence)) continue;
    uint32_t& given = budget.given[sequence->slot];
    const uint32_t share = left / num_drafters--;
    const uint32_t most = std::min(sequence->most_tokens, config_.max_model_len);
    if (given == 0 || given < sequence->num_missing()) continue;
    const uint32_t num_drafts = std::min(
        {share, static_cast<uint32_t>(sequence->drafts.size()), config_.MostStepTokens() - given,
         most - sequence->num_tokens() - 1, NumBeforePoint(*sequence, given)});
    if (num_drafts == 0 ||
        !kv_.Grow(sequence->blocks, sequence->num_scheduled + given + num_drafts)) {
      continue;
    }
    if (kv_.config().snapshots.has_value() && !kv_.SaveState(sequence->blocks)) continue;
    budget.drafts[sequence->slot] = num_drafts;
    given += num_drafts;
    left -= num_drafts;
  }
}

// No other step in flight names the sequence. What its blocks hold of rejected drafts is computed
// anew, and what its recurrent state has of them is not there in the one before all drafts: from
// there the accepted ones are computed again.
void Scheduler::TakeBack(const PlanEntry& entry) {
  Sequence& sequence = *entry.sequence;
  TANDEM_CHECK(entry.num_accepted <= entry.num_drafts && sequence.num_in_flight == 0);
  sequence.is_drafting = false;
  const uint32_t num_rejected = entry.num_drafts - entry.num_accepted;
  sequence.num_computed -= num_rejected;
  if (sequence.blocks.saved_state() != kNoBlock && num_rejected > 0) {
    sequence.again_end = sequence.num_computed;
    sequence.num_computed -= entry.num_accepted;
    sequence.restores_state = true;
  }
  sequence.num_scheduled = sequence.num_computed;
  sequence.num_drafted += entry.num_drafts;
  sequence.num_accepted += entry.num_accepted;
  stats_.drafts += entry.num_drafts;
  stats_.accepted_drafts += entry.num_accepted;
}

}  // namespace tandem::coordinator
