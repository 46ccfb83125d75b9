// What a request must be answered with, computed from its prompt and parameters alone: no
// scheduler, no blocks, no steps.
#ifndef TANDEM_TESTS_SIM_EXPECTED_H_
#define TANDEM_TESTS_SIM_EXPECTED_H_

#include <vector>

#include "coordinator/engine/request.h"
#include "tests/coordinator/cluster/simulated_model.h"

namespace tandem::sim {

struct Expected {
  std::vector<TokenId> tokens;
  std::vector<coordinator::TokenLogprobs> logprobs;  // with Sampling::logprobs
  std::vector<coordinator::TokenLogprobs>
      prompt_logprobs;           // with Sampling::prompt_logprobs, or of targets
  std::vector<float> embedding;  // with Request::pooling
  coordinator::FinishReason reason = coordinator::FinishReason::kNone;
};

Expected ExpectedOf(const coordinator::SimulatedModel& model, const coordinator::Request& request,
                    uint32_t max_model_len);

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_EXPECTED_H_
