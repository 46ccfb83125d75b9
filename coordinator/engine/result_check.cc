#include "coordinator/engine/result_check.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

bool IsToken(TokenId token, uint32_t vocab_size) {
  return token >= 0 && static_cast<uint32_t>(token) < vocab_size;
}

// The counts are already checked. Each token of a row has its own; a row without a sample has one
// set.
bool LogprobsAgree(const step::RowRequest& wanted, const step::RowResult& row,
                   uint32_t vocab_size) {
  for (const step::TokenLogprob& one : row.logprobs) {
    if (!IsToken(one.token, vocab_size) || one.rank == 0 || one.rank > vocab_size) return false;
  }
  const size_t stride = step::NumLogprobs(wanted);
  for (size_t begin = 0; begin < row.logprobs.size(); begin += stride) {
    size_t next = begin;
    if (wanted.wants & step::kWantSampleLogprob) {
      if (row.logprobs[next++].token != row.tokens[begin / stride]) return false;
    }
    for (TokenId id : wanted.logprobs_of) {
      if (row.logprobs[next++].token != id) return false;
    }
  }
  return true;
}

bool RowAgrees(const step::RowRequest& wanted, const step::RowResult& row, uint32_t vocab_size) {
  const bool samples = (wanted.wants & step::kWantSample) != 0;
  const size_t num_tokens = row.tokens.size();
  if (samples ? num_tokens < 1 || num_tokens > wanted.max_tokens : num_tokens > 0) return false;
  const size_t num_results = samples ? num_tokens : 1;
  const size_t num_logits = (wanted.wants & step::kWantLogits) != 0 ? vocab_size : 0;
  if (row.logits.size() != num_results * num_logits ||
      row.logprobs.size() != num_results * step::NumLogprobs(wanted)) {
    return false;
  }
  if (num_tokens == 1 && row.tokens[0] == step::kNotFinite) return true;
  for (TokenId token : row.tokens) {
    if (!IsToken(token, vocab_size)) return false;
  }
  return LogprobsAgree(wanted, row, vocab_size);
}

absl::Status CheckGuesses(const step::StepDescriptor& step, const step::StepResult& result,
                          uint32_t vocab_size) {
  const auto wanted = std::ranges::count_if(
      step.rows, [](const step::RowRequest& row) { return (row.wants & step::kWantGuess) != 0; });
  const auto wrong = std::ranges::find_if(result.guesses, [&](TokenId guess) {
    return guess != step::kNotFinite && !IsToken(guess, vocab_size);
  });
  if (std::ssize(result.guesses) == wanted && wrong == result.guesses.end()) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "rank 0 answered ", result.guesses.size(), " guesses of ", wanted, " in step ",
      step.step_id.value, wrong == result.guesses.end() ? "" : absl::StrCat(", one is ", *wrong)));
}

}  // namespace

absl::Status CheckResult(const step::StepDescriptor& step, const step::StepResult& result,
                         uint32_t vocab_size, uint32_t hidden_size) {
  if (result.pooled.size() != step.pools.size() * hidden_size) {
    return absl::UnavailableError(
        absl::StrCat("rank 0 answered ", result.pooled.size(), " values of ", step.pools.size(),
                     " pooled states of ", hidden_size, " in step ", step.step_id.value));
  }
  if (result.rows.size() != step.rows.size()) {
    return absl::UnavailableError(absl::StrCat("rank 0 answered ", result.rows.size(), " rows of ",
                                               step.rows.size(), " in step ", step.step_id.value));
  }
  TANDEM_RETURN_IF_ERROR(CheckGuesses(step, result, vocab_size));
  for (size_t r = 0; r < result.rows.size(); ++r) {
    const step::RowResult& row = result.rows[r];
    if (RowAgrees(step.rows[r], row, vocab_size)) continue;
    return absl::UnavailableError(absl::StrCat(
        "rank 0 answered row ", r, " of step ", step.step_id.value, " with ", row.tokens.size(),
        " tokens", row.tokens.empty() ? "" : absl::StrCat(", the first ", row.tokens[0]), ", ",
        row.logits.size(), " logits and ", row.logprobs.size(),
        " log-probabilities, which is not what it was asked for"));
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
