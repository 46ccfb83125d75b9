#include "coordinator/engine/repeated_endings.h"

#include <algorithm>
#include <cstddef>

namespace tandem::coordinator {
namespace {

// For each i: how many tokens from the i-th last one backwards equal those from the last one
// backwards; 0 for the last itself. The Z function (D. Gusfield, "Algorithms on strings, trees and
// sequences", 1997) of the reversed tokens.
std::vector<uint32_t> CommonEndings(std::span<const TokenId> tokens) {
  const size_t n = tokens.size();
  const auto reversed = [&](size_t i) { return tokens[n - 1 - i]; };
  std::vector<uint32_t> common(n, 0);
  size_t begin = 0, end = 0;  // the match found so far that ends last
  for (size_t i = 1; i < n; ++i) {
    size_t length = i < end ? std::min<size_t>(end - i, common[i - begin]) : 0;
    while (i + length < n && reversed(length) == reversed(i + length)) ++length;
    common[i] = static_cast<uint32_t>(length);
    if (i + length > end) begin = i, end = i + length;
  }
  return common;
}

}  // namespace

std::vector<RepeatedEnding> RepeatedEndings(std::span<const TokenId> tokens, uint32_t least_length,
                                            std::span<const TokenId> breakers) {
  std::vector<RepeatedEnding> found;
  const std::vector<uint32_t> common = CommonEndings(tokens);
  const uint32_t longest = common.empty() ? 0 : std::ranges::max(common);
  if (longest < least_length) return found;
  const auto breaks = [&](TokenId token) { return std::ranges::binary_search(breakers, token); };
  const std::span<const TokenId> last = tokens.last(longest);
  const auto unbroken = std::find_if(last.rbegin(), last.rend(), breaks) - last.rbegin();
  const auto most_length = static_cast<uint32_t>(unbroken);
  if (most_length < least_length) return found;
  for (size_t i = 1; i < common.size(); ++i) {
    if (common[i] < least_length) continue;
    const TokenId next = tokens[tokens.size() - i];
    const uint32_t length = std::min(common[i], most_length);
    if (!found.empty() && found.back().next == next) {
      found.back().length = std::max(found.back().length, length);
    } else {
      found.push_back({.next = next, .length = length});
    }
  }
  std::ranges::sort(found, [](const RepeatedEnding& a, const RepeatedEnding& b) {
    return a.next != b.next ? a.next < b.next : a.length > b.length;
  });
  const auto same = [](const RepeatedEnding& a, const RepeatedEnding& b) {
    return a.next == b.next;
  };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  std::erase_if(found, [&](const RepeatedEnding& one) { return breaks(one.next); });
  return found;
}

}  // namespace tandem::coordinator
