// Generation: a request being served, a sequence and what is to be drawn from it and for whom.
#ifndef TANDEM_COORDINATOR_ENGINE_GENERATION_H_
#define TANDEM_COORDINATOR_ENGINE_GENERATION_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "coordinator/engine/request.h"
#include "coordinator/scheduler/sequence.h"

namespace tandem::coordinator {

struct Generation : Sequence {
  Generation(uint64_t arrival_number, Request incoming)
      : Sequence(arrival_number, std::move(incoming.prompt)), request(std::move(incoming)) {}

  const Request request;  // without its prompt, which is in `tokens`

  // Whether `token`, the last of `tokens`, ends the generation, and how.
  FinishReason ReasonToEnd(TokenId token, uint32_t max_model_len) const {
    const Sampling& sampling = request.sampling;
    if (std::ranges::binary_search(sampling.end_ids, token)) return FinishReason::kStop;
    const bool full = num_generated() >= sampling.max_tokens || num_tokens() >= max_model_len;
    return full ? FinishReason::kLength : FinishReason::kNone;
  }
  Usage usage() const {
    return {.prompt_tokens = prompt_len,
            .completion_tokens = num_generated(),
            .cached_tokens = num_cached};
  }
};

// The scheduler's plan names sequences; the engine made each of them as part of a Generation.
inline Generation& GenerationOf(Sequence& sequence) { return static_cast<Generation&>(sequence); }

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_GENERATION_H_
