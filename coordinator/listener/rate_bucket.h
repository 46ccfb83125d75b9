// RateBucket: a token bucket: `rate` requests per second on average, `burst` of them at once.
#ifndef TANDEM_COORDINATOR_LISTENER_RATE_BUCKET_H_
#define TANDEM_COORDINATOR_LISTENER_RATE_BUCKET_H_

#include "common/base/clock.h"

namespace tandem::coordinator {

// Not thread-safe. Full at first.
class RateBucket {
 public:
  // REQUIRES: rate > 0, burst >= 1.
  RateBucket(double rate, double burst, TimePoint now)
      : rate_(rate), burst_(burst), left_(burst), filled_at_(now) {}

  // Takes the part of `count` requests; zero if it was there, else the time until it will be. More
  // than `burst` are there when it is full, and what they take too much is missing afterwards.
  Duration Take(TimePoint now, uint32_t count = 1);

 private:
  double rate_;
  double burst_;
  double left_;
  TimePoint filled_at_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_LISTENER_RATE_BUCKET_H_
