#include "coordinator/engine/apply.h"

#include <algorithm>
#include <cmath>
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

absl::Status NotFinite(uint32_t position) {
  return absl::DataLossError(
      absl::StrCat("the model's logits are not finite at position ", position,
                   ": its weights, or what was computed from them, hold NaN or infinity"));
}

// A generation ends where nothing but its end may follow.
void FollowForm(Generation& generation, StreamUpdate& update) {
  if (!generation.matcher.has_value()) return;
  auto next = generation.matcher->Follow(generation.generated());
  if (!next.ok()) {
    // It would not have gone on anyway.
    if (update.reason == FinishReason::kLength && !absl::IsInternal(next.status())) return;
    update.reason = FinishReason::kNone;
    update.status = next.status();
    return;
  }
  generation.next = *std::move(next);
  if (!generation.next.has_tokens) update.reason = FinishReason::kStop;
}

void ApplyTokens(const step::RowRequest& wanted, const step::RowResult& row, uint32_t max_model_len,
                 Generation& generation, StreamUpdate& update) {
  const size_t num_logprobs = step::NumLogprobs(wanted);
  const size_t num_logits = row.logits.size() / row.tokens.size();
  for (size_t i = 0; i < row.tokens.size() && !update.last(); ++i) {
    const TokenId token = row.tokens[i];
    if (token == step::kNotFinite) {
      update.status = NotFinite(generation.num_tokens() - 1);
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
    if (update.reason != FinishReason::kStop) FollowForm(generation, update);
  }
}

// The end of a generation that draws nothing. Its rows have no sample to say that their logits are
// not finite, but then the largest one's log-probability is not.
void EndIfComputed(const Generation& generation, StreamUpdate& update) {
  const auto is_finite = [](const TokenLogprobs& one) {
    return std::isfinite(one.top.empty() ? one.token.logprob : one.top.front().logprob);
  };
  if (const auto bad = std::ranges::find_if_not(update.prompt_logprobs, is_finite);
      bad != update.prompt_logprobs.end()) {
    const auto num_after = static_cast<uint32_t>(update.prompt_logprobs.end() - bad);
    update.prompt_logprobs.erase(bad, update.prompt_logprobs.end());
    update.status = NotFinite(generation.next_scored - num_after);
  } else if (generation.num_computed == generation.prompt_len) {
    update.reason = FinishReason::kLength;
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
      ++generation.next_scored;
    }
  }
  if (!generation.generates) EndIfComputed(generation, update);
  return update;
}

StreamUpdate PooledUpdate(const Generation& generation) {
  StreamUpdate update;
  if (generation.num_computed < generation.prompt_len) return update;
  const double count = generation.pooled_end - generation.pooled_from;
  for (const double sum : generation.pooled) {
    const auto value = static_cast<float>(sum / count);
    if (!std::isfinite(value)) {
      update.embedding.clear();
      update.status = absl::DataLossError(
          "the model's final states are not finite: its weights, or what was computed from them, "
          "hold NaN or infinity");
      return update;
    }
    update.embedding.push_back(value);
  }
  update.reason = FinishReason::kLength;
  return update;
}

void TakeGuesses(Step& step, std::span<const TokenId> guesses) {
  step::StepDescriptor& descriptor = step.descriptor;
  auto row = descriptor.rows.begin();
  for (size_t e = 0; e < step.plan.entries.size(); ++e) {
    const uint32_t end = descriptor.query_offsets[e + 1];
    std::vector<TokenId> of_entry;
    for (; row != descriptor.rows.end() && row->token < end; ++row) {
      if ((row->wants & step::kWantGuess) == 0) continue;
      of_entry.push_back(guesses.front());
      guesses = guesses.subspan(1);
      if (row->token + 1 < end) descriptor.tokens[row->token + 1] = of_entry.back();
    }
    if (of_entry.empty()) continue;
    GenerationOf(*step.plan.entries[e].sequence).speculator->Learn(std::move(of_entry));
  }
}

uint32_t NumAccepted(const step::StepDescriptor& step, std::span<const step::RowRequest> rows,
                     std::span<const step::RowResult> results, const Generation& generation) {
  const auto is_accepted = [&](size_t row) {
    const TokenId drawn = results[row].tokens.front();
    const bool is_last = drawn == step::kNotFinite || generation.IsEnd(drawn);
    return !is_last && drawn == step.tokens[rows[row].token + 1];
  };
  uint32_t accepted = 0;
  while (accepted + 1 < rows.size() && is_accepted(accepted)) ++accepted;
  return accepted;
}

}  // namespace tandem::coordinator
