// The results of `tandem bench`, as text and JSON.
#ifndef TANDEM_CLIENT_BENCH_BENCH_REPORT_H_
#define TANDEM_CLIENT_BENCH_BENCH_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/bench/bench_options.h"
#include "client/bench/measure.h"

namespace tandem::client {

struct BenchReport {
  BenchOptions options;
  std::string architecture;
  std::string quantization;
  int threads_per_worker = 0;  // as resolved
  std::optional<Measurement> prefill;
  std::vector<std::pair<uint32_t, Measurement>> decode;  // by batch size
};

// A table, each line ending in a newline.
std::string FormatReport(const BenchReport& report);
// One object, indented, without a newline at its end. Keys `prefill_tokens_per_second` (a number),
// `decode_tokens_per_second` (by batch), the set-up, and under `coordinator_us_per_step` the
// coordinator's time by phase. Values not measured are absent.
std::string ToJson(const BenchReport& report);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_BENCH_REPORT_H_
