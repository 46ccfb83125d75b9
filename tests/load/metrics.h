// RunMetrics: the figures of a run, as vLLM's serving benchmark defines them, except that latencies
// count from the intended send time and that those of slow readers do not count.
#ifndef TANDEM_TESTS_LOAD_METRICS_H_
#define TANDEM_TESTS_LOAD_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tests/load/objectives.h"
#include "tests/load/run_record.h"
#include "tests/load/summary.h"

namespace tandem::load {

struct RunMetrics {
  size_t completed = 0;
  size_t failed = 0;
  size_t cancelled = 0;
  size_t cut = 0;
  uint64_t total_input_tokens = 0;   // of completed requests
  uint64_t total_output_tokens = 0;  // likewise
  double request_throughput = 0;     // completed requests per second of the duration
  std::optional<double> request_goodput;
  std::optional<double> good_share;  // of the requests that have latencies; unset if none has
  double output_throughput = 0;
  double total_token_throughput = 0;
  double max_output_tokens_per_s = 0;  // in the best second
  size_t max_concurrent_requests = 0;
  std::vector<std::pair<MetricName, Summary>> latencies;  // in milliseconds
};

// The samples of a metric in milliseconds, in the order of the requests.
std::vector<double> MetricValues(const std::vector<Sample>& samples, MetricName metric);

RunMetrics ComputeMetrics(const RunRecord& record, const std::vector<MetricName>& metrics,
                          const std::vector<double>& percents, const Objectives& objectives);

// Tokens that arrived in each interval of `width_s` from the run's start, of all requests.
std::vector<double> TokensPerInterval(const RunRecord& record, double width_s);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_METRICS_H_
