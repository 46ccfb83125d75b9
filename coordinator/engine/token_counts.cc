#include "coordinator/engine/token_counts.h"

#include <algorithm>

namespace tandem::coordinator {
namespace {

// From so many new tokens on, such as a prompt's, all are counted again, by sorting.
constexpr size_t kManyTokens = 64;

}  // namespace

void TokenCounts::Advance(std::span<const TokenId> tokens) {
  if (tokens.size() - num_seen_ >= kManyTokens) {
    Rebuild(tokens);
  } else {
    for (; num_seen_ < tokens.size(); ++num_seen_) {
      Add(tokens[num_seen_], num_seen_);
      if (num_seen_ >= window_) Remove(tokens[num_seen_ - window_], num_seen_ - window_);
    }
  }
  num_seen_ = tokens.size();
}

void TokenCounts::Rebuild(std::span<const TokenId> tokens) {
  size_t begin = tokens.size() - std::min(window_, tokens.size());
  if (!with_prompt_) begin = std::min(std::max(begin, prompt_len_), tokens.size());
  std::vector<TokenId> sorted(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end());
  std::ranges::sort(sorted);
  counts_.clear();
  for (const TokenId token : sorted) {
    if (counts_.empty() || counts_.back().id != token) counts_.push_back({.id = token});
    ++counts_.back().total;
  }
  for (size_t i = std::max(begin, prompt_len_); i < tokens.size(); ++i) {
    ++Find(tokens[i])->generated;
  }
}

void TokenCounts::Add(TokenId token, size_t position) {
  if (!IsCounted(position)) return;
  auto found = Find(token);
  if (found == counts_.end() || found->id != token) found = counts_.insert(found, {.id = token});
  ++found->total;
  if (position >= prompt_len_) ++found->generated;
}

void TokenCounts::Remove(TokenId token, size_t position) {
  if (!IsCounted(position)) return;
  const auto found = Find(token);
  if (position >= prompt_len_) --found->generated;
  if (--found->total == 0) counts_.erase(found);
}

std::vector<TokenCounts::Count>::iterator TokenCounts::Find(TokenId token) {
  return std::ranges::lower_bound(counts_, token, {}, &Count::id);
}

}  // namespace tandem::coordinator
