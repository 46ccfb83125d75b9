#include "coordinator/listener/rate_bucket.h"

#include <algorithm>
#include <chrono>

namespace tandem::coordinator {

Duration RateBucket::Take(TimePoint now, uint32_t count) {
  using Seconds = std::chrono::duration<double>;
  left_ = std::min(burst_, left_ + rate_ * Seconds(now - filled_at_).count());
  filled_at_ = now;
  const double needed = std::min<double>(count, burst_);
  if (left_ >= needed) {
    left_ -= count;
    return Duration::zero();
  }
  return std::max<Duration>(std::chrono::ceil<Duration>(Seconds((needed - left_) / rate_)),
                            Duration(1));
}

}  // namespace tandem::coordinator
