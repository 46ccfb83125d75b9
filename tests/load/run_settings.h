// RunSettings: when the requests of a run are sent, and how long it may take. Plain data.
#ifndef TANDEM_TESTS_LOAD_RUN_SETTINGS_H_
#define TANDEM_TESTS_LOAD_RUN_SETTINGS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"

namespace tandem::load {

struct RunSettings {
  // One for each request, rising; empty: a closed loop, or all at once without a limit.
  std::vector<double> times_s{};
  std::optional<uint32_t> max_concurrency{};
  Duration max_duration = std::chrono::hours(24);
  Duration request_timeout = std::chrono::minutes(10);

  // A request's intended time is when it may be sent.
  bool closed_loop() const { return times_s.empty() && max_concurrency.has_value(); }
};

// A time of a run, from its start; at most thirty years, whatever a trace says.
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, 1e9)));
}

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_RUN_SETTINGS_H_
