#include "coordinator/engine/logit_adjuster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/step/limits.h"
#include "coordinator/engine/repeated_endings.h"

namespace tandem::coordinator {
namespace {

using Adjustments = std::vector<step::LogitAdjustment>;

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Below what a float holds, whatever is subtracted from it.
constexpr double kLargestPenalty = 1e30;

uint32_t TokensOf(int32_t window) {
  return window < 0 ? step::kMaxPenaltyWindow : static_cast<uint32_t>(window);
}

std::span<const TokenId> Last(uint32_t count, std::span<const TokenId> tokens) {
  return tokens.last(std::min<size_t>(count, tokens.size()));
}

// Both are ascending by id; so is the result.
void Merge(Adjustments more, Adjustments& all) {
  if (more.empty()) return;
  if (all.empty()) return all.swap(more);
  Adjustments merged;
  merged.reserve(all.size() + more.size());
  auto next = more.begin();
  for (const step::LogitAdjustment& one : all) {
    while (next != more.end() && next->id < one.id) merged.push_back(*next++);
    merged.push_back(one);
    if (next == more.end() || next->id != one.id) continue;
    merged.back().bias += next->bias;
    merged.back().repetition *= next->repetition;
    merged.back().penalty += next->penalty;
    ++next;
  }
  merged.insert(merged.end(), next, more.end());
  all.swap(merged);
}

// Whether `ending` ends the generated tokens.
bool EndWith(std::span<const TokenId> generated, std::span<const TokenId> ending) {
  return ending.size() <= generated.size() &&
         std::ranges::equal(generated.last(ending.size()), ending);
}

}  // namespace

LogitAdjuster::LogitAdjuster(const Sampling& sampling, uint32_t prompt_len)
    : sampling_(sampling),
      prompt_len_(prompt_len),
      counts_tokens_(sampling.penalties.frequency != 0 || sampling.penalties.presence != 0 ||
                     sampling.penalties.repetition != 1),
      counts_(TokensOf(sampling.penalties.window), prompt_len, sampling.penalties.repetition != 1) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (bias != 0) biases_.push_back({.id = id, .bias = bias});
  }
}

bool LogitAdjuster::needs_known_tokens() const {
  return counts_tokens_ || sampling_.penalties.dry_multiplier > 0 ||
         std::ranges::any_of(sampling_.banned_sequences,
                             [](const auto& sequence) { return sequence.size() > 1; });
}

std::vector<step::LogitAdjustment> LogitAdjuster::Adjust(std::span<const TokenId> tokens,
                                                         uint32_t num_pending) {
  Adjustments all = biases_;
  if (counts_tokens_) Merge(Penalties(tokens), all);
  if (sampling_.penalties.dry_multiplier > 0) Merge(DryPenalties(tokens), all);
  Merge(Bans(tokens, num_pending), all);
  return all;
}

// As vLLM does: repetition by every token, frequency and presence by generated ones.
LogitAdjuster::Adjustments LogitAdjuster::Penalties(std::span<const TokenId> tokens) {
  const step::SamplingPenalties& penalties = sampling_.penalties;
  counts_.Advance(tokens);
  Adjustments adjustments;
  adjustments.reserve(counts_.counts().size());
  for (const TokenCounts::Count& count : counts_.counts()) {
    float penalty = 0;
    if (count.generated > 0) {
      penalty = static_cast<float>(count.generated) * penalties.frequency + penalties.presence;
    }
    if (penalty == 0 && penalties.repetition == 1) continue;
    adjustments.push_back({.id = count.id, .repetition = penalties.repetition, .penalty = penalty});
  }
  return adjustments;
}

LogitAdjuster::Adjustments LogitAdjuster::DryPenalties(std::span<const TokenId> tokens) const {
  const step::SamplingPenalties& penalties = sampling_.penalties;
  const auto allowed = static_cast<uint32_t>(penalties.dry_allowed_length);
  Adjustments adjustments;
  for (const RepeatedEnding& ending : RepeatedEndings(
           Last(TokensOf(penalties.dry_penalty_last_n), tokens), allowed, sampling_.dry_breakers)) {
    const double penalty = double{penalties.dry_multiplier} *
                           std::pow(double{penalties.dry_base}, double(ending.length - allowed));
    adjustments.push_back(
        {.id = ending.next, .penalty = static_cast<float>(std::min(penalty, kLargestPenalty))});
  }
  return adjustments;
}

LogitAdjuster::Adjustments LogitAdjuster::Bans(std::span<const TokenId> tokens,
                                               uint32_t num_pending) const {
  const std::span<const TokenId> generated = tokens.subspan(prompt_len_);
  std::vector<TokenId> banned;
  if (generated.size() + num_pending < sampling_.min_tokens) banned = sampling_.end_ids;
  for (const std::vector<TokenId>& sequence : sampling_.banned_sequences) {
    const std::span<const TokenId> ids(sequence);
    if (EndWith(generated, ids.first(ids.size() - 1))) banned.push_back(ids.back());
  }
  std::ranges::sort(banned);
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  Adjustments adjustments;
  for (const TokenId id : banned) adjustments.push_back({.id = id, .bias = kNever});
  return adjustments;
}

}  // namespace tandem::coordinator
