// RunRecord: everything that was observed in one run.
#ifndef TANDEM_TESTS_LOAD_RUN_RECORD_H_
#define TANDEM_TESTS_LOAD_RUN_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/load/sample.h"

namespace tandem::load {

// The server's state at one moment, from its statistics.
struct StatsPoint {
  double at_s = 0;  // from the run's start
  int64_t waiting = 0;
  int64_t running = 0;
  double kv_used = 0;  // of the KV blocks, 0 to 1
};

enum class RunEnd { kDone, kInterrupted, kServerLost };

struct RunRecord {
  std::vector<Sample> samples;  // of the requests that were sent, in their order
  size_t not_sent = 0;
  double duration_s = 0;  // from the start to the end of the last request
  double request_rate = 0;
  double burstiness = 1;
  std::optional<uint32_t> max_concurrency;
  std::vector<StatsPoint> stats;
  RunEnd end = RunEnd::kDone;
  std::string end_reason;  // of a run that was ended early
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_RUN_RECORD_H_
