#include "client/bench/bench_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem::client {
namespace {

using Json = nlohmann::ordered_json;
using coordinator::EngineStepTimings;

double MicrosPerStep(int64_t ns, const EngineStepTimings& timings) {
  return static_cast<double>(ns) / 1000.0 /
         static_cast<double>(std::max<int64_t>(timings.steps, 1));
}

Json StepJson(const EngineStepTimings& timings) {
  return {{"schedule", MicrosPerStep(timings.schedule_ns, timings)},
          {"build", MicrosPerStep(timings.build_ns, timings)},
          {"submit", MicrosPerStep(timings.submit_ns, timings)},
          {"apply", MicrosPerStep(timings.apply_ns, timings)},
          {"total", MicrosPerStep(timings.coordinator_ns(), timings)},
          {"wait", MicrosPerStep(timings.wait_ns, timings)}};
}

std::string Row(const std::string& what, const Measurement& measurement) {
  const EngineStepTimings& timings = measurement.timings;
  return absl::StrFormat(
      "%-12s  %10.2f tokens/s  %10.1f us/step in workers, %8.1f in coordinator\n", what,
      measurement.tokens_per_second, MicrosPerStep(timings.wait_ns, timings),
      MicrosPerStep(timings.coordinator_ns(), timings));
}

}  // namespace

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
  return text;
}

std::string ToJson(const BenchReport& report) {
  const config::WorkerConfig& worker = report.options.server.worker;
  const int32_t ranks = report.options.server.cluster.tensor_parallel_size;
  Json json;
  json["model"] = worker.model.path;
  json["architecture"] = report.architecture;
  json["quantization"] = report.quantization;
  json["device"] = config::NameOf(worker.device.device);
  json["cpu_kernels"] = config::NameOf(worker.device.cpu_kernels);
  json["kv_cache_type"] = config::NameOf(worker.cache.kv_cache_type);
  json["step_transport"] = config::NameOf(worker.transport.step_transport);
  json["tensor_parallel_size"] = ranks;
  json["threads_per_worker"] = report.threads_per_worker;
  json["prefill"] = report.options.prefill;
  json["decode"] = report.options.decode;
  json["repetitions"] = report.options.repetitions;
  Json by_batch = Json::object();
  Json steps = Json::object();
  if (report.prefill) {
    json["prefill_tokens_per_second"] = report.prefill->tokens_per_second;
    steps["prefill"] = StepJson(report.prefill->timings);
  }
  for (const auto& [batch, measurement] : report.decode) {
    by_batch[absl::StrCat(batch)] = measurement.tokens_per_second;
    steps["decode"][absl::StrCat(batch)] = StepJson(measurement.timings);
  }
  if (!report.decode.empty()) json["decode_tokens_per_second"] = by_batch;
  json["coordinator_us_per_step"] = steps;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem::client
