// Generation: a request being served, a sequence with its sampling parameters and its stream.
#ifndef TANDEM_COORDINATOR_ENGINE_GENERATION_H_
#define TANDEM_COORDINATOR_ENGINE_GENERATION_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "coordinator/engine/logit_adjuster.h"
#include "coordinator/engine/request.h"
#include "coordinator/scheduler/sequence.h"
#include "coordinator/speculation/speculator.h"

namespace tandem::coordinator {

struct Generation : Sequence {
  Generation(RequestHandle request_handle, Request incoming)
      : Sequence(request_handle, std::move(incoming.prompt)),
        request(std::move(incoming)),
        adjuster(request.sampling, prompt_len) {
    generates = request.generates();
    if (request.pooling.has_value()) {
      pooled_from = request.pooling == Pooling::kLast ? prompt_len - 1 : 0;
      pooled_end = request.pooling == Pooling::kCls ? 1 : prompt_len;
    } else if (!generates) {
      scored_from = prompt_len - static_cast<uint32_t>(request.targets.size());
    } else if (request.sampling.prompt_logprobs.has_value()) {
      scored_from = 0;
    }
    next_scored = scored_from;
    next_pooled = pooled_from;
    prefix_hashes.salt = SaltOf(request);
    most_tokens = prompt_len + std::min(request.sampling.max_tokens, UINT32_MAX - prompt_len);
    priority = request.priority;
    if (request.sampling.grammar != nullptr) {
      matcher.emplace(request.sampling.grammar);
      next = request.sampling.grammar->first();
    }
    needs_known_tokens = adjuster.needs_known_tokens() || matcher.has_value();
  }

  Generation(const Generation&) = delete;  // `adjuster` refers to `request`
  Generation& operator=(const Generation&) = delete;

  const Request request;  // without its prompt, which is in `tokens`
  LogitAdjuster adjuster;
  std::optional<grammar::Matcher> matcher{};  // none: the answer may be anything
  grammar::Continuation next{};               // with `matcher`: what may follow `tokens`
  std::optional<Speculator> speculator{};     // none: its tokens are drawn one by one
  TimePoint scheduled_at{};                   // first
  uint32_t next_scored = 0;  // position of the prompt whose row is to come next, if it is scored
  uint32_t next_pooled = 0;  // likewise, whose state is to be pooled next
  std::vector<double> pooled{};  // the sum of the states before it
  uint32_t last_sample = 0;      // index into `sampling` of the last step built that draws for it

  // The range of positions in [begin, end) whose rows give a missing log-probability. Rows that
  // came before a preemption are not requested again.
  std::pair<uint32_t, uint32_t> PositionsToScore(uint32_t begin, uint32_t end) const {
    return {std::max(begin, next_scored), std::min(end, generates ? prompt_len - 1 : prompt_len)};
  }
  // The range of positions in [begin, end) whose states are to be pooled, likewise.
  std::pair<uint32_t, uint32_t> PositionsToPool(uint32_t begin, uint32_t end) const {
    return {std::max(begin, next_pooled), std::min(end, pooled_end)};
  }
  // The sum of the next `count` states.
  void AddPooled(uint32_t count, std::span<const double> sum) {
    pooled.resize(sum.size());
    for (size_t i = 0; i < sum.size(); ++i) pooled[i] += sum[i];
    next_pooled += count;
  }
  // The id that the row of a position to score is for.
  TokenId TargetAt(uint32_t position) const {
    return generates ? tokens[position + 1] : request.targets[position - scored_from];
  }

  // Whether workers guess its next tokens, and do no harm by that as far as is known.
  bool drafts_on_workers() const {
    return may_draft && speculator.has_value() && speculator->on_workers();
  }
  // Whether what workers guess for it from now on may be of use.
  bool is_guessed_for() const { return drafts_on_workers() && !speculator->has_given_up(); }
  // New tokens are known: guesses those after them, if a step may have drafts (Plan::may_draft). If
  // not, guessing would be for nothing, and goes on from there when one may.
  void Speculate(bool steps_may_draft) {
    if (!speculator.has_value()) return;
    drafts.clear();
    if (!steps_may_draft || !may_draft) return speculator->Skip(tokens);
    drafts = speculator->Guess(tokens);
    if (speculator->on_workers()) return;
    // The row before an id that ends it draws that id.
    const auto end = std::ranges::find_if(drafts, [&](TokenId token) { return IsEnd(token); });
    drafts.erase(end, drafts.end());
  }

  // What K and V of its prompt depend on besides tokens. The salts of requests with an adapter
  // begin as no text of a client does: 0xff is never in UTF-8.
  static std::string SaltOf(const Request& request) {
    if (request.adapter == 0) return request.cache_salt;
    return absl::StrCat("\xff", request.adapter, ":", request.cache_salt);
  }

  // Whether the id ends the generation wherever it is drawn.
  bool IsEnd(TokenId token) const {
    return std::ranges::binary_search(request.sampling.end_ids, token);
  }
  std::span<const TokenId> generated() const { return std::span(tokens).subspan(prompt_len); }
  // The ids that may come next; empty: all.
  step::TokenMask Allowed() const {
    if (!matcher.has_value()) return {};
    step::TokenMask allowed = *next.allowed;
    if (!next.can_end) return allowed;
    for (const TokenId id : request.sampling.end_ids) step::Insert(id, allowed);
    return allowed;
  }
  // Whether `token`, the last of `tokens`, ends the generation, and how.
  FinishReason ReasonToEnd(TokenId token, uint32_t max_model_len) const {
    if (IsEnd(token)) return FinishReason::kStop;
    const bool full =
        num_generated() >= request.sampling.max_tokens || num_tokens() >= max_model_len;
    return full ? FinishReason::kLength : FinishReason::kNone;
  }
  Usage usage() const {
    return {.prompt_tokens = prompt_len,
            .completion_tokens = num_generated(),
            .cached_tokens = num_cached,
            .draft_tokens = num_drafted,
            .accepted_draft_tokens = num_accepted};
  }
};

// The scheduler's plan names sequences; the engine made each of them as part of a Generation.
inline Generation& GenerationOf(Sequence& sequence) { return static_cast<Generation&>(sequence); }

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_GENERATION_H_
