#include "coordinator/speculation/speculator.h"

#include <algorithm>

namespace tandem::coordinator {

std::vector<TokenId> Speculator::Guess(std::span<const TokenId> tokens) {
  Judge(tokens.subspan(num_seen_));
  num_seen_ = tokens.size();
  std::vector<TokenId> guess = drafter_->Draft(tokens, most_);
  guess_ = on_workers() ? std::vector<TokenId>() : guess;
  guess.resize(std::min<size_t>(policy_.Length(most_), guess.size()));
  return guess;
}

void Speculator::Skip(std::span<const TokenId> tokens) {
  if (!on_workers()) return;
  guess_.clear();
  num_seen_ = tokens.size();
}

void Speculator::Judge(std::span<const TokenId> drawn) {
  const auto [wrong, other] = std::ranges::mismatch(guess_, drawn);
  const bool one_wrong = wrong != guess_.end() && other != drawn.end();
  policy_.Judge(static_cast<uint32_t>(wrong - guess_.begin()), one_wrong);
}

}  // namespace tandem::coordinator
