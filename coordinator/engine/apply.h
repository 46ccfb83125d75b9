// ApplyRows: appends the results of one sequence's rows to its generation: log-probabilities of its
// prompt, one or more sampled tokens, and whether the last of them ends it. PooledUpdate: the
// embedding of one that pools states.
#ifndef TANDEM_COORDINATOR_ENGINE_APPLY_H_
#define TANDEM_COORDINATOR_ENGINE_APPLY_H_

#include <cstdint>
#include <span>

#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "coordinator/engine/generation.h"
#include "coordinator/engine/step.h"

namespace tandem::coordinator {

// `results` answer `rows` (CheckResult). Tokens after the one that ends the generation are dropped;
// one that draws nothing ends once its prompt is computed, which Scheduler::Settle knows.
// In the update DATA_LOSS if a row's logits are not finite, and what Matcher::Follow returns.
StreamUpdate ApplyRows(std::span<const step::RowRequest> rows,
                       std::span<const step::RowResult> results, uint32_t max_model_len,
                       Generation& generation);

// Of a generation that pools states: its embedding and its end, once its prompt is computed, which
// Scheduler::Settle knows; nothing before. DATA_LOSS in the update if its states are not finite.
StreamUpdate PooledUpdate(const Generation& generation);

// Puts the workers' `guesses`, one per row that wants one (CheckResult), into the places of the
// step's drafts, and lets its generations judge them.
void TakeGuesses(Step& step, std::span<const TokenId> guesses);

// How many of an entry's drafts are what was drawn in their place, from the first on, up to one
// that ends `generation`: its row is the last. `rows` are the entry's; the drafts are the tokens of
// `step` after the first row's.
uint32_t NumAccepted(const step::StepDescriptor& step, std::span<const step::RowRequest> rows,
                     std::span<const step::RowResult> results, const Generation& generation);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_APPLY_H_
