// Delivery: what a step gave one generation, on its way to the request's stream.
#ifndef TANDEM_COORDINATOR_ENGINE_DELIVERY_H_
#define TANDEM_COORDINATOR_ENGINE_DELIVERY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/engine/request.h"

namespace tandem::coordinator {

struct Delivery {
  uint64_t arrival;
  std::vector<TokenLogprobs> prompt_logprobs{};
  std::optional<GeneratedToken> token{};
  FinishReason reason = FinishReason::kNone;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_DELIVERY_H_
