// DefaultTokenBudget: how many tokens a step has unless --max-num-batched-tokens says.
#ifndef TANDEM_COORDINATOR_STARTUP_TOKEN_BUDGET_H_
#define TANDEM_COORDINATOR_STARTUP_TOKEN_BUDGET_H_

#include <cstdint>

#include "common/config/worker_config.h"
#include "common/model/spec.h"

namespace tandem::coordinator {

// A prompt's first token comes when its step ends, with those of all prompts of the step, and
// everyone's next tokens wait as long. So a step should have no more tokens than it takes to
// compute them at the full rate.
uint32_t DefaultTokenBudget(const config::WorkerConfig& worker, const model::ModelSpec& spec);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_TOKEN_BUDGET_H_
