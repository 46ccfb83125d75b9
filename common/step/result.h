// StepResult: the result of a step on one rank. Rank 0's carries tokens (and logits); the others'
// are status and timings.
#ifndef TANDEM_COMMON_STEP_RESULT_H_
#define TANDEM_COMMON_STEP_RESULT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace tandem::step {

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
  uint32_t rank = 0;  // 1 + how many ids of the row are likelier
  bool operator==(const TokenLogprob&) const = default;
};

// A sampled token that stands for "a logit of the row is NaN or +inf, or none is finite".
inline constexpr TokenId kNotFinite = -1;

// `logprobs` are of the raw distribution, the log-softmax of the row's logits: first the sampled
// id's (kWantSampleLogprob), then logprobs_of in its order, then the top_n likeliest ids, likeliest
// first. If a row gives several tokens, all of these for each token in order.
struct RowResult {
  std::vector<TokenId> tokens{};         // 1 to max_tokens with kWantSample, or only kNotFinite
  std::vector<TokenLogprob> logprobs{};  // (tokens, NumLogprobs(RowRequest))
  std::vector<float> logits{};           // (tokens, vocab) with kWantLogits
  bool operator==(const RowResult&) const = default;
};

// Microseconds of the worker's phases.
struct StepTimings {
  static constexpr uint32_t kNotMeasured = UINT32_MAX;

  uint64_t received_at_us = 0;  // when the step had come, on the rank's own clock (NowMicros)
  uint32_t idle_us = 0;         // waiting for the step, after the result of the one before
  uint32_t receive_us = 0;
  uint32_t encode_us = 0;
  uint32_t submit_us = 0;
  uint32_t wait_us = 0;
  // Of `submit_us` and `wait_us`: in collectives, waiting for other ranks included. One that takes
  // part in none, or whose device does them, measures nothing.
  uint32_t collective_us = kNotMeasured;
  bool operator==(const StepTimings&) const = default;
};

struct StepResult {
  StepId step_id;
  Epoch epoch;
  uint32_t rank = 0;
  absl::Status status;  // not OK: the step failed on this rank, and has no other results
  std::vector<RowResult> rows{};
  std::vector<double> pooled{};  // (pools, hidden size): the sum over each PoolRequest's tokens
  // Of each row with kWantGuess: an id, or kNotFinite of the guesser's logits.
  std::vector<TokenId> guesses{};
  StepTimings timings;
  bool operator==(const StepResult&) const = default;
};

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_RESULT_H_
