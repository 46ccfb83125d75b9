// Plan: what the scheduler decided for one step. A value; the sequences it names are borrowed.
#ifndef TANDEM_COORDINATOR_SCHEDULER_PLAN_H_
#define TANDEM_COORDINATOR_SCHEDULER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/scheduler/sequence.h"

namespace tandem::coordinator {

struct PlanEntry {
  Sequence* sequence = nullptr;
  uint32_t num_tokens = 0;  // from sequence->num_computed on
  Phase phase = Phase::kPrefill;
  // True when the step computes the sequence's last token, so that the next one is drawn.
  bool samples = false;
  bool operator==(const PlanEntry&) const = default;
};

struct Plan {
  std::vector<PlanEntry> entries;    // decodes first, then prefills, each by arrival
  uint32_t num_tokens = 0;           // of all entries
  std::vector<Sequence*> preempted;  // sent back to waiting to make room, latest arrival first
  bool operator==(const Plan&) const = default;
  // "decode 3+1 prefill 4+512 preempted 5": arrival + tokens.
  std::string DebugString() const;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_PLAN_H_
