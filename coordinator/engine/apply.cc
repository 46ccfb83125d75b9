#include "coordinator/engine/apply.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

// A token's own log-probability comes first.
TokenLogprobs ToTokenLogprobs(std::span<const step::TokenLogprob> values) {
  return {.token = values.front(), .top = {values.begin() + 1, values.end()}};
}

void ApplyTokens(const step::RowRequest& wanted, const step::RowResult& row, uint32_t max_model_len,
                 Generation& generation, StreamUpdate& update) {
  const size_t num_logprobs = step::NumLogprobs(wanted);
  const size_t num_logits = row.logits.size() / row.tokens.size();
  for (size_t i = 0; i < row.tokens.size() && update.reason == FinishReason::kNone; ++i) {
    const TokenId token = row.tokens[i];
    if (token == step::kNotFinite) {
      update.status = absl::InternalError(absl::StrCat(
          "the model's logits are not finite at position ", generation.num_tokens() - 1,
          ": its weights, or what was computed from them, hold NaN or infinity"));
      return;
    }
    generation.tokens.push_back(token);
    if (auto* sink = generation.request.logits_sink; sink != nullptr) {
      const auto begin = row.logits.begin() + static_cast<std::ptrdiff_t>(i * num_logits);
      sink->emplace_back(begin, begin + static_cast<std::ptrdiff_t>(num_logits));
    }
    update.tokens.push_back(token);
    if (num_logprobs > 0) {
      update.logprobs.push_back(
          ToTokenLogprobs(std::span(row.logprobs).subspan(i * num_logprobs, num_logprobs)));
    }
    update.reason = generation.ReasonToEnd(token, max_model_len);
  }
}

}  // namespace

StreamUpdate ApplyRows(std::span<const step::RowRequest> rows,
                       std::span<const step::RowResult> results, uint32_t max_model_len,
                       Generation& generation) {
  StreamUpdate update;
  for (size_t i = 0; i < rows.size(); ++i) {
    if ((rows[i].wants & step::kWantSample) != 0) {
      ApplyTokens(rows[i], results[i], max_model_len, generation, update);
    } else {
      update.prompt_logprobs.push_back(ToTokenLogprobs(results[i].logprobs));
      ++generation.num_scored;
    }
  }
  return update;
}

uint32_t NumAccepted(const step::StepDescriptor& step, std::span<const step::RowRequest> rows,
                     std::span<const step::RowResult> results) {
  uint32_t accepted = 0;
  while (accepted + 1 < rows.size() &&
         results[accepted].tokens.front() == step.tokens[rows[accepted].token + 1]) {
    ++accepted;
  }
  return accepted;
}

}  // namespace tandem::coordinator
