#include "coordinator/speculation/ngram_drafter.h"

#include <algorithm>
#include <bit>

namespace tandem::coordinator {
namespace {

// Entries of the index: at least two per token, so that few n-grams share one, up to 256 KiB.
constexpr size_t kLeastEntries = 256;
constexpr size_t kMostEntries = 1 << 16;
constexpr size_t kMostIndexed = 4096;  // n-grams of one call, for a long prompt
constexpr size_t kWays = 4;            // entries of one hash, of which the oldest gives way

// Of the n-gram before position `end`. A multiplicative hash; its upper bits are good.
uint64_t HashBefore(std::span<const TokenId> tokens, size_t end) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  uint64_t hash = 0;
  for (size_t i = end - NgramDrafter::kMatch; i < end; ++i) {
    hash = (hash ^ static_cast<uint32_t>(tokens[i])) * kOdd;
    hash ^= hash >> 32;
  }
  return hash * kOdd;
}

bool AreEqual(std::span<const TokenId> tokens, size_t end, size_t other_end) {
  constexpr uint32_t kMatch = NgramDrafter::kMatch;
  return std::ranges::equal(tokens.subspan(end - kMatch, kMatch),
                            tokens.subspan(other_end - kMatch, kMatch));
}

}  // namespace

std::vector<TokenId> NgramDrafter::Draft(std::span<const TokenId> tokens, uint32_t most) {
  std::vector<TokenId> draft;
  Index(tokens);
  if (found_ == 0) return draft;
  // A draft that is longer than what followed goes on with itself: the text has a period.
  const size_t period = tokens.size() - found_;
  for (uint32_t i = 0; i < most; ++i) {
    draft.push_back(i < period ? tokens[found_ + i] : draft[i - period]);
  }
  return draft;
}

void NgramDrafter::Index(std::span<const TokenId> tokens) {
  if (tokens.size() < kMatch) return;
  if (ends_.size() < kMostEntries && ends_.size() < 2 * tokens.size()) Grow(tokens);
  const int shift = 64 - std::countr_zero(ends_.size() / kWays);
  const size_t first = std::max(num_indexed_, kMatch);
  const size_t last = std::min(tokens.size(), first + kMostIndexed);
  for (size_t end = first; end <= last; ++end) {
    const auto set = std::span(ends_).subspan(kWays * (HashBefore(tokens, end) >> shift), kWays);
    const auto same = std::ranges::find_if(
        set, [&](uint32_t other) { return other > 0 && AreEqual(tokens, end, other); });
    found_ = same == set.end() ? 0 : *same;
    *(same == set.end() ? std::ranges::min_element(set) : same) = static_cast<uint32_t>(end);
  }
  num_indexed_ = static_cast<uint32_t>(last) + 1;
  if (last < tokens.size()) found_ = 0;
}

void NgramDrafter::Grow(std::span<const TokenId> tokens) {
  const size_t size = std::clamp(std::bit_ceil(4 * tokens.size()), kLeastEntries, kMostEntries);
  ends_.assign(size, 0);
  num_indexed_ = 0;
}

}  // namespace tandem::coordinator
