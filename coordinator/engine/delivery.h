// Delivery: what a step gave one generation, on its way to the request's stream.
#ifndef TANDEM_COORDINATOR_ENGINE_DELIVERY_H_
#define TANDEM_COORDINATOR_ENGINE_DELIVERY_H_

#include <vector>

#include "coordinator/engine/request.h"

namespace tandem::coordinator {

struct Delivery {
  RequestHandle handle;
  std::vector<TokenLogprobs> prompt_logprobs{};
  std::vector<GeneratedToken> tokens{};
  FinishReason reason = FinishReason::kNone;  // why the last of the tokens ends it, if it does
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_DELIVERY_H_
