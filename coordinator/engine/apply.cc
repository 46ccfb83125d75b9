#include "coordinator/engine/apply.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace tandem::coordinator {
namespace {

// A token's own log-probability comes first.
TokenLogprobs ToTokenLogprobs(std::span<const step::TokenLogprob> values) {
  return {.token = values.front(), .top = {values.begin() + 1, values.end()}};
}

void ApplyTokens(const step::RowRequest& wanted, const step::RowResult& row, uint32_t max_model_len,
                 Generation& generation, Delivery& delivery) {
  const size_t num_logprobs = step::NumLogprobs(wanted);
  const size_t num_logits = row.logits.size() / row.tokens.size();
  for (size_t i = 0; i < row.tokens.size() && delivery.reason == FinishReason::kNone; ++i) {
    const TokenId token = row.tokens[i];
    generation.tokens.push_back(token);
    if (auto* sink = generation.request.logits_sink; sink != nullptr) {
      const auto begin = row.logits.begin() + static_cast<std::ptrdiff_t>(i * num_logits);
      sink->emplace_back(begin, begin + static_cast<std::ptrdiff_t>(num_logits));
    }
    GeneratedToken& given = delivery.tokens.emplace_back(token);
    if (num_logprobs > 0) {
      given.logprobs =
          ToTokenLogprobs(std::span(row.logprobs).subspan(i * num_logprobs, num_logprobs));
    }
    delivery.reason = generation.ReasonToEnd(token, max_model_len);
  }
}

}  // namespace

Delivery ApplyRows(std::span<const step::RowRequest> rows, std::span<const step::RowResult> results,
                   uint32_t max_model_len, Generation& generation) {
  Delivery delivery{.handle = generation.handle};
  for (size_t i = 0; i < rows.size(); ++i) {
    if ((rows[i].wants & step::kWantSample) != 0) {
      ApplyTokens(rows[i], results[i], max_model_len, generation, delivery);
    } else {
      delivery.prompt_logprobs.push_back(ToTokenLogprobs(results[i].logprobs));
      ++generation.num_scored;
    }
  }
  return delivery;
}

}  // namespace tandem::coordinator
