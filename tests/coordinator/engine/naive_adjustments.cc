#include "tests/coordinator/engine/naive_adjustments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tandem::coordinator {
namespace {

using ById = std::map<TokenId, step::LogitAdjustment>;

step::LogitAdjustment& At(ById& all, TokenId id) {
  return all.try_emplace(id, step::LogitAdjustment{.id = id}).first->second;
}

size_t FirstSeen(int32_t window, size_t num_tokens) {
  const size_t seen = window < 0 ? 4096 : static_cast<size_t>(window);
  return num_tokens - std::min(seen, num_tokens);
}

void AddPenalties(const Sampling& sampling, const std::vector<TokenId>& tokens, size_t prompt_len,
                  ById& all) {
  const auto& penalties = sampling.penalties;
  std::map<TokenId, int> times;
  for (size_t i = FirstSeen(penalties.window, tokens.size()); i < tokens.size(); ++i) {
    if (penalties.repetition != 1) At(all, tokens[i]).repetition = penalties.repetition;
    if (i >= prompt_len) ++times[tokens[i]];
  }
  if (penalties.frequency == 0 && penalties.presence == 0) return;
  for (const auto& [id, count] : times) {
    At(all, id).penalty = static_cast<float>(count) * penalties.frequency + penalties.presence;
  }
}

// The length of the longest ending of `tokens` without breakers that also ends before position
// `at`.
size_t EndingBefore(size_t at, size_t first, const std::vector<TokenId>& tokens,
                    const std::vector<TokenId>& breakers) {
  size_t length = 0;
  while (length < at - first && tokens[at - 1 - length] == tokens[tokens.size() - 1 - length] &&
         std::ranges::count(breakers, tokens[at - 1 - length]) == 0) {
    ++length;
  }
  return length;
}

void AddDry(const Sampling& sampling, const std::vector<TokenId>& tokens, ById& all) {
  const auto& penalties = sampling.penalties;
  if (penalties.dry_multiplier == 0) return;
  const auto allowed = static_cast<size_t>(penalties.dry_allowed_length);
  const size_t first = FirstSeen(penalties.dry_penalty_last_n, tokens.size());
  std::map<TokenId, size_t> longest;
  for (size_t at = first; at < tokens.size(); ++at) {
    if (std::ranges::count(sampling.dry_breakers, tokens[at]) > 0) continue;
    const size_t length = EndingBefore(at, first, tokens, sampling.dry_breakers);
    if (length >= allowed) longest[tokens[at]] = std::max(longest[tokens[at]], length);
  }
  for (const auto& [id, length] : longest) {
    const double penalty = double{penalties.dry_multiplier} *
                           std::pow(double{penalties.dry_base}, double(length - allowed));
    At(all, id).penalty += static_cast<float>(std::min(penalty, 1e30));
  }
}

}  // namespace

std::vector<step::LogitAdjustment> NaiveAdjustments(const Sampling& sampling,
                                                    const std::vector<TokenId>& tokens,
                                                    size_t prompt_len) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  ById all;
  for (const auto& [id, bias] : sampling.logit_bias) At(all, id).bias = bias;
  AddPenalties(sampling, tokens, prompt_len, all);
  AddDry(sampling, tokens, all);
  if (tokens.size() - prompt_len < sampling.min_tokens) {
    for (const TokenId id : sampling.end_ids) At(all, id).bias = kNever;
  }
  for (const auto& banned : sampling.banned_sequences) {
    const size_t before = banned.size() - 1;
    if (tokens.size() - prompt_len < before) continue;
    if (std::equal(banned.begin(), banned.end() - 1, tokens.end() - static_cast<long>(before))) {
      At(all, banned.back()).bias = kNever;
    }
  }
  std::vector<step::LogitAdjustment> list;
  for (const auto& [id, one] : all) {
    const bool neutral = one.bias == 0 && one.repetition == 1 && one.penalty == 0;
    if (!neutral) list.push_back(one);
  }
  return list;
}

}  // namespace tandem::coordinator
