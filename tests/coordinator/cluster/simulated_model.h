// SimulatedModel: the mathematics of the simulated worker. A token's "K and V" is one number that
// depends on the token, its position and, through the block table, on every number before it; the
// next token is a hash of what the last token reads. So a wrong block table, a stale prefix hit, a
// bad slot or a window that is off by one changes the tokens; likewise a wrong recurrent state, the
// fold of all tokens so far. Pure functions.
#ifndef TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_MODEL_H_
#define TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_MODEL_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::coordinator {

inline constexpr uint64_t kSimulatedSeed = 0x7461'6e64'656d;  // a fold's start

struct SimulatedModel {
  uint32_t vocab_size = 97;
  uint32_t hidden_size = 5;
  std::vector<uint32_t> window_tokens = {0};  // per KV group; 0: all

  bool recurrent = false;
  // > 0: fifteen of sixteen tokens follow from the position, with this period, so that they can be
  // guessed; the state decides which.
  uint32_t period = 0;
  bool workers_guess = false;  // it guesses the period

  // The first position that a query at `position` reads.
  uint32_t FirstRead(size_t group, uint32_t position) const {
    const uint32_t window = window_tokens[group];
    return window == 0 || position < window ? 0 : position - window + 1;
  }

  // The sampled token of a row whose state is `state`; never one that is banned or that the
  // mask lacks, and another one for other adjustments.
  TokenId Sample(uint64_t state, const step::RowSampling& sampling) const;
  // What the draft model guesses the token at `position` to be.
  TokenId Guess(uint64_t position) const;
  // (vocab): the greedy token's is the largest.
  std::vector<float> Logits(uint64_t state) const;
  // (hidden_size): multiples of 2^-24, so that doubles add them without rounding.
  std::vector<float> Hidden(uint64_t state) const;
  // What `row` asks for of Logits(state), where `sampled` was drawn.
  std::vector<step::TokenLogprob> Logprobs(uint64_t state, const step::RowRequest& row,
                                           TokenId sampled) const;
};

// Folds `value` into `state`; order matters.
uint64_t SimulatedMix(uint64_t state, uint64_t value);
// The number that a token leaves in the cache of `group`, given the fold of those that it reads.
uint64_t SimulatedKv(uint64_t context, TokenId token, uint32_t position, size_t group);

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_MODEL_H_
