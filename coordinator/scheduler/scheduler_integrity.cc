// Scheduler::CheckIntegrity.
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/scheduler/queue_order.h"
#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {

absl::Status Scheduler::CheckOrder() const {
  const Sequence* previous = nullptr;
  const auto check = [&](const Sequence* sequence, SequenceState state) {
    const bool rises = previous == nullptr || ServedBefore(*previous, *sequence);
    previous = sequence;
    if (rises && sequence->state == state) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("sequence ", sequence->handle, " is in the wrong place or state"));
  };
  for (const Sequence* sequence : running_) {
    TANDEM_RETURN_IF_ERROR(check(sequence, SequenceState::kRunning));
  }
  previous = nullptr;
  for (const Sequence* sequence : waiting_) {
    TANDEM_RETURN_IF_ERROR(check(sequence, SequenceState::kWaiting));
    if (!sequence->blocks.empty()) {
      return absl::InternalError(
          absl::StrCat("sequence ", sequence->handle, " waits and holds blocks"));
    }
  }
  return absl::OkStatus();
}

absl::Status Scheduler::CheckFollowers() const {
  size_t num_promises = 0;
  for (const Sequence* sequence : running_) {
    num_promises += sequence->promised.has_value() ? 1 : 0;
    if (sequence->leader == nullptr) continue;
    return absl::InternalError(absl::StrCat("sequence ", sequence->handle, " runs and follows"));
  }
  for (const Sequence* sequence : waiting_) {
    if (sequence->leader == nullptr && !sequence->promised.has_value()) continue;
    return absl::InternalError(
        absl::StrCat("sequence ", sequence->handle, " is in the queue and follows, or leads"));
  }
  if (num_promises != promises_.num_leaders()) {
    return absl::InternalError(absl::StrCat(num_promises, " of the running sequences promise, not ",
                                            promises_.num_leaders()));
  }
  return promises_.CheckIntegrity();
}

absl::Status Scheduler::CheckIntegrity() const {
  TANDEM_RETURN_IF_ERROR(CheckOrder());
  TANDEM_RETURN_IF_ERROR(CheckFollowers());
  std::vector<bool> slot_seen(config_.max_num_seqs, false);
  std::vector<uint32_t> slots = free_slots_;
  std::vector<const SequenceBlocks*> live;
  for (const Sequence* sequence : running_) {
    slots.push_back(sequence->slot);
    live.push_back(&sequence->blocks);
    TANDEM_RETURN_IF_ERROR(
        Annotate(kv_.CheckWindow(sequence->blocks, sequence->num_computed, sequence->num_scheduled),
                 absl::StrCat("sequence ", sequence->handle)));
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
