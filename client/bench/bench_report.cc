#include "client/bench/bench_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem::client {
namespace {

using coordinator::EngineStepTimings;

std::string Row(const std::string& what, const Measurement& measurement) {
  const EngineStepTimings& timings = measurement.timings;
  return absl::StrFormat(
      "%-12s  %10.2f tokens/s  %10.1f us/step in workers, %8.1f in coordinator, rank 0 idle %.1f\n",
      what, measurement.tokens_per_second, MicrosPerStep(timings.wait_ns, timings),
      MicrosPerStep(timings.coordinator_ns(), timings), MicrosPerStep(timings.idle_ns, timings));
}

std::string Row(const BenchReport::Drafts& drafts) {
  const DraftMeasurement& measured = drafts.measured;
  return absl::StrFormat(
      "%-12s  %10.2f tokens/s  %10.2f times of without guesses (%.2f to %.2f), %d of %d computed "
      "ones accepted in all repetitions\n",
      absl::StrFormat("%u%% right x%u", drafts.acceptance, drafts.batch),
      measured.tokens_per_second, measured.ratio, measured.least_ratio, measured.most_ratio,
      measured.accepted, measured.drafts);
}

}  // namespace

double MicrosPerStep(int64_t ns, const EngineStepTimings& timings) {
  return static_cast<double>(ns) / 1000.0 /
         static_cast<double>(std::max<int64_t>(timings.steps, 1));
}

std::string FormatReport(const BenchReport& report) {
  const config::WorkerConfig& worker = report.options.server.worker;
  const int32_t ranks = report.options.server.cluster.tensor_parallel_size;
  std::string text = absl::StrFormat(
      "%s: %s, %s\n%d rank(s) of %d thread(s) on %s, kernels %s, KV cache %s; "
      "median of %u repetition(s)\n",
      worker.model.path, report.architecture, report.quantization, ranks, report.threads_per_worker,
      config::NameOf(worker.device.device), config::NameOf(worker.device.cpu_kernels),
      config::NameOf(worker.cache.kv_cache_type), report.options.repetitions);
  if (report.prefill) {
    absl::StrAppend(&text, Row(absl::StrCat("prefill ", report.options.prefill), *report.prefill));
  }
  for (const auto& [batch, measurement] : report.decode) {
    absl::StrAppend(&text, Row(absl::StrCat("decode x", batch), measurement));
  }
  for (const BenchReport::Drafts& drafts : report.drafts) text += Row(drafts);
  return text;
}

}  // namespace tandem::client
