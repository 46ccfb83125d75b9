// Step: one step of the engine as a value: the scheduler's plan and the workers' descriptor. Owned,
// and moved through the pipeline.
#ifndef TANDEM_COORDINATOR_ENGINE_STEP_H_
#define TANDEM_COORDINATOR_ENGINE_STEP_H_

#include "common/step/descriptor.h"
#include "coordinator/scheduler/plan.h"

namespace tandem::coordinator {

struct Step {
  Plan plan;  // the sequences that it names outlive the step
  step::StepDescriptor descriptor;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_STEP_H_
