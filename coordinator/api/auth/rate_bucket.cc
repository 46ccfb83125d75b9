#include "coordinator/api/auth/rate_bucket.h"

#include <algorithm>
#include <chrono>

namespace tandem::coordinator {

Duration RateBucket::Take(TimePoint now) {
  using Seconds = std::chrono::duration<double>;
  left_ = std::min(burst_, left_ + rate_ * Seconds(now - filled_at_).count());
  filled_at_ = now;
  if (left_ >= 1) {
    left_ -= 1;
    return Duration::zero();
  }
  return std::max<Duration>(std::chrono::ceil<Duration>(Seconds((1 - left_) / rate_)), Duration(1));
}

}  // namespace tandem::coordinator
