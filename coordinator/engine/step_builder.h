// StepBuilder: flattens the scheduler's plan to a StepDescriptor. Of block tables it writes only
// changes since earlier steps, and a pending token is a reference to the step before. Sequences and
// their rows are in the order of the plan's entries: rows that score prompt tokens, then the
// sampled row, if any.
#ifndef TANDEM_COORDINATOR_ENGINE_STEP_BUILDER_H_
#define TANDEM_COORDINATOR_ENGINE_STEP_BUILDER_H_

#include <cstdint>

#include "common/step/descriptor.h"
#include "coordinator/engine/generation.h"
#include "coordinator/scheduler/plan.h"

namespace tandem::coordinator {

// Puts sequences with the same adapter side by side, which workers multiply together; decodes stay
// first.
void GroupByAdapter(Plan& plan);

class StepBuilder {
 public:
  // `guesses`: the workers have a draft model or head that guesses for this engine.
  StepBuilder(uint32_t block_size, uint32_t num_groups, bool guesses)
      : block_size_(block_size), num_groups_(num_groups), guesses_(guesses) {}

  // Fills all of `out` except step id and epoch, reusing its memory. The plan's sequences are
  // Generations, in their state before Scheduler::Advance, and remember their sample of the step.
  void Build(const Plan& plan, step::StepDescriptor& out) const;

 private:
  void Clear(step::StepDescriptor& out) const;
  // The guesser computes nothing of the step if that is of no use; then its sequences' blocks are
  // not for others from here on.
  void SkipGuesser(const Plan& plan, step::StepDescriptor& out) const;
  // `may_draft` is the plan's.
  void AddEntry(const PlanEntry& entry, bool may_draft, step::StepDescriptor& out) const;
  void AddTables(const PlanEntry& entry, step::StepDescriptor& out) const;

  const uint32_t block_size_;
  const uint32_t num_groups_;
  const bool guesses_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_STEP_BUILDER_H_
