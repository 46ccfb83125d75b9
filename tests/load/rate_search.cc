#include "tests/load/rate_search.h"

#include <cmath>

namespace tandem::load {

std::optional<double> RateSearch::Next() const {
  const bool close = kept_up_ && saturated_ && *saturated_ / *kept_up_ <= kPrecision;
  if (close || runs_ == kMaxRuns) return std::nullopt;
  return next_;
}

void RateSearch::Add(bool kept_up) {
  ++runs_;
  (kept_up ? kept_up_ : saturated_) = next_;
  if (kept_up_ && saturated_) {
    next_ = std::sqrt(*kept_up_ * *saturated_);
  } else {
    next_ *= kept_up_ ? 2 : 0.5;
  }
}

}  // namespace tandem::load
