#include "tests/load/run_result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/text_form.h"

namespace tandem::load {
namespace {

constexpr int kWidth = 60;
constexpr size_t kShownErrors = 3;

std::string Heading(const std::string& text, char fill) {
  const size_t left = (kWidth - std::min<size_t>(text.size() + 2, kWidth)) / 2;
  std::string line = absl::StrCat(std::string(left, fill), " ", text, " ");
  line.resize(std::max<size_t>(line.size(), kWidth), fill);
  return line + "\n";
}

std::string Row(const std::string& name, double value) {
  return absl::StrFormat("%-44s %.2f\n", name + ":", value);
}
std::string Row(const std::string& name, uint64_t value) {
  return absl::StrFormat("%-44s %d\n", name + ":", value);
}

std::string LatencyRows(MetricName metric, const Summary& summary) {
  const MetricText& text = TextOf(metric);
  std::string rows = Heading(text.title, '-');
  absl::StrAppend(&rows, Row(absl::StrCat("Mean ", text.label, " (ms)"), summary.mean));
  absl::StrAppend(&rows, Row(absl::StrCat("Median ", text.label, " (ms)"), summary.median));
  for (const auto& [percent, value] : summary.percentiles) {
    const std::string name = absl::AsciiStrToUpper(PercentileKey(percent));
    absl::StrAppend(&rows, Row(absl::StrCat(name, " ", text.label, " (ms)"), value));
  }
  return rows;
}

std::string ErrorRows(const std::vector<Sample>& samples) {
  std::string rows;
  size_t shown = 0;
  for (const Sample& sample : samples) {
    if (sample.outcome != Outcome::kFailed) continue;
    if (shown++ == kShownErrors) break;
    absl::StrAppend(&rows, "  error: ", sample.error, "\n");
  }
  return rows;
}

}  // namespace

std::string RateText(double rate) { return absl::StrCat(rate); }

std::string PercentileKey(double percent) { return absl::StrCat("p", config::ToText(percent)); }

const MetricText& TextOf(MetricName metric) {
  return *std::find_if(std::begin(kMetricTexts), std::end(kMetricTexts),
                       [&](const MetricText& text) { return text.name == metric; });
}

const char* Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted:
      return "completed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kCut:
      return "cut";
  }
  return "?";
}

const char* Name(RunEnd end) {
  switch (end) {
    case RunEnd::kDone:
      return "done";
    case RunEnd::kInterrupted:
      return "interrupted";
    case RunEnd::kServerLost:
      return "server_lost";
  }
  return "?";
}

std::string FormatResult(const RunResult& result) {
  const RunMetrics& metrics = result.metrics;
  const RunRecord& record = result.record;
  std::string text = Heading("Serving benchmark result", '=');
  absl::StrAppend(&text, Row("Successful requests", uint64_t{metrics.completed}));
  absl::StrAppend(&text, Row("Failed requests", uint64_t{metrics.failed}));
  absl::StrAppend(&text, ErrorRows(record.samples));
  if (metrics.cancelled > 0) {
    absl::StrAppend(&text, Row("Requests cancelled on purpose", uint64_t{metrics.cancelled}));
  }
  if (metrics.cut > 0) absl::StrAppend(&text, Row("Requests cut", uint64_t{metrics.cut}));
  if (record.not_sent > 0) {
    absl::StrAppend(&text, Row("Requests not sent", uint64_t{record.not_sent}));
  }
  if (record.end != RunEnd::kDone) absl::StrAppend(&text, "Ended early: ", record.end_reason, "\n");
  if (record.max_concurrency) {
    absl::StrAppend(&text, Row("Maximum request concurrency", uint64_t{*record.max_concurrency}));
  }
  absl::StrAppend(&text, absl::StrFormat("%-44s %s\n", "Request rate configured (req/s):",
                                         RateText(record.request_rate)));
  absl::StrAppend(&text, Row("Benchmark duration (s)", record.duration_s));
  absl::StrAppend(&text, Row("Total input tokens", metrics.total_input_tokens));
  absl::StrAppend(&text, Row("Total generated tokens", metrics.total_output_tokens));
  absl::StrAppend(&text, Row("Request throughput (req/s)", metrics.request_throughput));
  if (metrics.request_goodput) {
    absl::StrAppend(&text, Row("Request goodput (req/s)", *metrics.request_goodput));
  }
  absl::StrAppend(&text, Row("Output token throughput (tok/s)", metrics.output_throughput));
  absl::StrAppend(&text,
                  Row("Peak output token throughput (tok/s)", metrics.max_output_tokens_per_s));
  absl::StrAppend(&text,
                  Row("Peak concurrent requests", uint64_t{metrics.max_concurrent_requests}));
  absl::StrAppend(&text, Row("Total token throughput (tok/s)", metrics.total_token_throughput));
  for (const auto& [metric, summary] : metrics.latencies) {
    absl::StrAppend(&text, LatencyRows(metric, summary));
  }
  return text + std::string(kWidth, '=') + "\n";
}

std::string FormatDefinitions() {
  std::string text = "Definitions\n";
  for (const MetricText& metric : kMetricTexts) {
    absl::StrAppend(&text, "  ", metric.label, ": ", metric.definition, ".\n");
  }
  absl::StrAppend(
      &text,
      "  Intended send time: the request's place in the arrival process or trace; in a closed\n"
      "  loop (--max-concurrency, rate inf) the moment when a place is free; all at once: the "
      "start.\n"
      "  Latencies and goodput are of completed requests that were not read slowly on purpose.\n"
      "  Throughputs are of completed requests over the duration: the run's start to the end of "
      "its\n"
      "  last request. Percentiles interpolate linearly.\n");
  return text;
}

}  // namespace tandem::load
