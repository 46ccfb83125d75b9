// RefusalLog: log lines about callers that are refused, few however many they are.
#ifndef TANDEM_COORDINATOR_LISTENER_REFUSAL_LOG_H_
#define TANDEM_COORDINATOR_LISTENER_REFUSAL_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/listener/rate_bucket.h"

namespace tandem::coordinator {

// Thread-safe.
class RefusalLog {
 public:
  // `port` begins the lines; "" for the public one.
  explicit RefusalLog(const Clock& clock = Clock::System(), std::string port = "")
      : clock_(clock), port_(std::move(port)), lines_(kLinesPerSecond, kLinesAtOnce, clock.Now()) {}

  // A line per second on average, ten at once; a line counts those before it that had none.
  // `what`, a method or a caller, may be anything. Returns what was logged, or "".
  std::string Add(std::string_view what, std::string_view reason);

 private:
  static constexpr double kLinesPerSecond = 1;
  static constexpr double kLinesAtOnce = 10;

  const Clock& clock_;
  const std::string port_;
  Mutex mutex_;
  RateBucket lines_ TANDEM_GUARDED_BY(mutex_);
  uint64_t without_line_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_LISTENER_REFUSAL_LOG_H_
