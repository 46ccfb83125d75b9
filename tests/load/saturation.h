// Saturation: whether a server kept up with the rate of a run.
//
// Beyond its capacity each request takes longer than the one before: who comes a second later waits
// rate / capacity - 1 seconds longer, before the first token or between tokens. So the growth of
// the latencies tells, whatever the lengths of answers, once the server is as busy as it will be,
// and as long as requests still come.
#ifndef TANDEM_TESTS_LOAD_SATURATION_H_
#define TANDEM_TESTS_LOAD_SATURATION_H_

#include <string>

#include "tests/load/run_record.h"

namespace tandem::load {

struct Saturation {
  // Less is no growth, and as many requests may fail: with them the rate is at most about as much
  // above the capacity.
  static constexpr double kTolerance = 0.05;
  // Growth at which no run is long enough for latencies to be short beside it.
  static constexpr double kPlain = 0.5;
  // A run lasts so many latencies: two to fill the server, three to be judged, one to keep it full.
  static constexpr double kLatencies = 6;

  double growth = 0;        // seconds of latency for each second of arrivals
  double error = 0;         // standard error of that; infinite for too few requests
  double failed_share = 0;  // of the requests
  double latency_s = 0;     // mean of those that came first
  double duration_s = 0;    // in which requests came
  // Whether it lasted long enough for its latencies.
  bool steady() const { return duration_s >= kLatencies * latency_s; }
  bool saturated() const { return failed_share > kTolerance || growth > kTolerance; }
  // Whether a longer run would hardly say anything else.
  bool clear() const;
  // How long a run should be that says more.
  double wanted_s() const;
};

// Of an open loop whose requests have all ended. Requests that the client cancelled on purpose
// count until then; slow readers, whose latencies are their own doing, do not.
Saturation JudgeSaturation(const RunRecord& record);

// "latencies grew by 1.2% of the time (standard error 0.3%): kept up".
std::string Text(const Saturation& saturation);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SATURATION_H_
