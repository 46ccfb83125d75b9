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
  const bool only_decodes = std::ranges::all_of(
      running_, [](const Sequence* sequence) { return sequence->phase() == Phase::kDecode; });
  return only_decodes && std::ranges::any_of(running_, HasDrafts) &&
         kv_.HasSpare(static_cast<uint32_t>(running_.size()) + config_.MostDraftRows());
}

void Scheduler::AddDrafts(StepBudget& budget) {
  uint32_t left = config_.MostDraftRows() - static_cast<uint32_t>(running_.size());
  left = std::min(left, budget.tokens);
  auto num_drafters = static_cast<uint32_t>(std::ranges::count_if(running_, HasDrafts));
  budget.drafts.assign(config_.max_num_seqs, 0);
  for (Sequence* sequence : running_) {
    if (!HasDrafts(sequence)) continue;
    uint32_t& given = budget.given[sequence->slot];
    const uint32_t share = left / num_drafters--;
    const uint32_t most = std::min(sequence->most_tokens, config_.max_model_len);
    const uint32_t num_drafts =
        std::min({share, static_cast<uint32_t>(sequence->drafts.size()),
                  config_.MostStepTokens() - given, most - sequence->num_tokens() - 1});
    if (given == 0 || !kv_.Grow(sequence->blocks, sequence->num_scheduled + given + num_drafts)) {
      continue;
    }
    budget.drafts[sequence->slot] = num_drafts;
    given += num_drafts;
    left -= num_drafts;
  }
}

// No other step in flight names the sequence. What its blocks hold of rejected drafts is computed
// anew.
void Scheduler::TakeBack(const PlanEntry& entry) {
  Sequence& sequence = *entry.sequence;
  TANDEM_CHECK(entry.num_accepted <= entry.num_drafts && sequence.num_in_flight == 0);
  sequence.is_drafting = false;
  sequence.num_computed -= entry.num_drafts - entry.num_accepted;
  sequence.num_scheduled = sequence.num_computed;
  sequence.num_drafted += entry.num_drafts;
  sequence.num_accepted += entry.num_accepted;
  stats_.drafts += entry.num_drafts;
  stats_.accepted_drafts += entry.num_accepted;
}

}  // namespace tandem::coordinator
