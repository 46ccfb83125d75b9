#include "coordinator/speculation/scripted_drafter.h"

#include <algorithm>

namespace tandem::coordinator {

std::vector<TokenId> ScriptedDrafter::Draft(std::span<const TokenId> tokens, uint32_t most) {
  std::vector<TokenId> draft;
  const size_t end = std::min(script_.tokens.size(), tokens.size() + most);
  for (size_t position = tokens.size(); position < end; ++position) {
    const TokenId right = script_.tokens[position];
    const TokenId wrong = right == 0 ? 1 : right - 1;
    draft.push_back(IsRight(position) ? right : wrong);
  }
  return draft;
}

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the position's number of the seed's sequence.
bool ScriptedDrafter::IsRight(size_t position) const {
  uint64_t bits = script_.seed + (position + 1) * 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1p-53 < script_.acceptance;
}

}  // namespace tandem::coordinator
