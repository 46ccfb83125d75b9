// StepBuilder: flattens the scheduler's plan to a StepDescriptor. Everything that a worker needs is
// written out in full. Sequences, and their rows, stand in the order of the plan's entries: rows
// that score prompt tokens, then one that is sampled where the entry samples.
#ifndef TANDEM_COORDINATOR_ENGINE_STEP_BUILDER_H_
#define TANDEM_COORDINATOR_ENGINE_STEP_BUILDER_H_

#include <cstdint>

#include "common/step/descriptor.h"
#include "coordinator/engine/generation.h"
#include "coordinator/scheduler/plan.h"

namespace tandem::coordinator {

class StepBuilder {
 public:
  StepBuilder(uint32_t block_size, uint32_t num_groups)
      : block_size_(block_size), num_groups_(num_groups) {}

  // The plan's sequences are Generations. The descriptor is reused by the next call.
  const step::StepDescriptor& Build(const Plan& plan, StepId step_id, Epoch epoch);

 private:
  void Clear();
  void AddEntry(const PlanEntry& entry);
  void AddTables(const Sequence& sequence, uint32_t num_tokens);
  // Rows of the entry's tokens that score prompt tokens; `begin` is the first token's position.
  void AddScoredRows(const Generation& generation, uint32_t begin, uint32_t num_tokens);
  void AddSampledRow(const Generation& generation);

  const uint32_t block_size_;
  const uint32_t num_groups_;
  step::StepDescriptor step_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_STEP_BUILDER_H_
