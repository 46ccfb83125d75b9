#include "client/trace/rank_clocks.h"

#include <algorithm>

namespace tandem::client {
namespace {

// Ranks tell their times in whole microseconds.
constexpr int64_t kTick = 1000;

}  // namespace

void RankClocks::Add(Rank rank, int64_t sent_ns, int64_t answered_ns, int64_t received_ns,
                     int64_t done_ns) {
  Bounds& bounds = bounds_[rank];
  bounds.least_ns = std::max(bounds.least_ns, sent_ns - received_ns);
  bounds.most_ns = std::min(bounds.most_ns, answered_ns - done_ns);
}

RankClocks::Offset RankClocks::Of(Rank rank) const {
  const Bounds& bounds = bounds_.at(rank);
  if (bounds.least_ns <= kTick && bounds.most_ns >= -kTick) return {};
  const int64_t width = bounds.most_ns - bounds.least_ns;
  return {.ns = bounds.least_ns + width / 2,
          .error_ns = std::max(kTick, std::max(width, -width) / 2)};
}

}  // namespace tandem::client
