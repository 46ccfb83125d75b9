// The results of `tandem bench`.
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
  struct Drafts {
    uint32_t batch = 0;
    uint32_t acceptance = 0;  // percent
    DraftMeasurement measured{};
  };
  std::vector<Drafts> drafts{};
};

// A table, each line ending in a newline.
std::string FormatReport(const BenchReport& report);
// `ns` of all the steps, in microseconds of one.
double MicrosPerStep(int64_t ns, const coordinator::EngineStepTimings& timings);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_BENCH_REPORT_H_
