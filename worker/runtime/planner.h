// The plan of a rank's memory: a counting pass over the largest steps, and the KV cache sized by
// the remaining memory, without trial and error.
#ifndef TANDEM_WORKER_RUNTIME_PLANNER_H_
#define TANDEM_WORKER_RUNTIME_PLANNER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/spec.h"
#include "common/step/descriptor.h"
#include "worker/model/described_model.h"
#include "worker/model/loaded_model.h"
#include "worker/runtime/runner_options.h"
#include "worker/runtime/runner_plan.h"

namespace tandem::worker {

// Before weights are loaded, from shapes alone: kernels' scratch and decode graphs, which depend on
// placed weights, are not counted, and nothing is allocated. INVALID_ARGUMENT for options that
// contradict the model, RESOURCE_EXHAUSTED if the model or not even one KV block fits.
absl::StatusOr<RunnerPlan> MakePlan(const DescribedModel& model, const RunnerOptions& options);
// The whole plan, with the same errors; the backend reserves its scratch.
absl::StatusOr<RunnerPlan> MakePlan(LoadedModel& model, const RunnerOptions& options);

// The limits of a step, with `num_blocks` per KV group.
step::StepLimits LimitsFor(const model::ModelSpec& spec, const RunnerOptions& options,
                           const std::vector<uint32_t>& num_blocks);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_PLANNER_H_
