// RefusalLog: log lines about callers that are refused, few however many they are.
#ifndef TANDEM_COORDINATOR_API_AUTH_REFUSAL_LOG_H_
#define TANDEM_COORDINATOR_API_AUTH_REFUSAL_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace tandem::coordinator {

// Thread-safe.
class RefusalLog {
 public:
  explicit RefusalLog(const Clock& clock = Clock::System()) : clock_(clock) {}

  // At most a line per second, which counts those before it that had none. `method` may be
  // anything. Returns what was logged, or "".
  std::string Add(std::string_view method, std::string_view reason);

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::optional<TimePoint> last_ TANDEM_GUARDED_BY(mutex_);
  uint64_t without_line_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_AUTH_REFUSAL_LOG_H_
