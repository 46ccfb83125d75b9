#include "tests/load/html_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/load/svg_chart.h"

namespace tandem::load {
namespace {

constexpr char kStyle[] =
    "body{font:14px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1180px;padding:0 16px;"
    "color:#1f2328}"
    "table{border-collapse:collapse}td,th{padding:3px 10px;border-bottom:1px solid #d0d7de;"
    "text-align:right}th{background:#f6f8fa}"
    "svg{margin:6px 8px 6px 0;border:1px solid #d0d7de;border-radius:6px;max-width:100%}"
    "svg text{font:11px system-ui,sans-serif;fill:#57606a}"
    "svg .title{font-weight:600;fill:#1f2328}"
    "svg .grid{stroke:#eaeef2}polyline{stroke-width:1.6}"
    "pre{background:#f6f8fa;padding:8px;overflow-x:auto;white-space:pre-wrap}"
    "summary{cursor:pointer;font-weight:600}";

constexpr int kTimelineIntervals = 120;  // of a run's tokens per second, at most

// At which a run is drawn: offered in an open loop, achieved in a closed one.
double RateOf(const RunResult& result) {
  return std::isinf(result.record.request_rate) ? result.metrics.request_throughput
                                                : result.record.request_rate;
}

std::string NameOfRun(const RunResult& result) {
  std::string name = absl::StrCat("rate ", RateText(result.record.request_rate));
  if (result.record.max_concurrency) {
    absl::StrAppend(&name, ", ", *result.record.max_concurrency, " in flight");
  }
  return name;
}

std::string Cell(double value) { return absl::StrFormat("<td>%.4g</td>", value); }

std::string Table(const std::vector<RunResult>& results) {
  std::string html =
      "<table><tr><th>run<th>completed<th>failed<th>cancelled<th>duration s<th>requests/s"
      "<th>goodput/s<th>output tokens/s";
  for (const auto& [metric, summary] : results.front().metrics.latencies) {
    for (const auto& [percent, value] : summary.percentiles) {
      absl::StrAppend(&html, "<th>", TextOf(metric).label, " ", PercentileKey(percent), " ms");
    }
  }
  absl::StrAppend(&html, "</tr>\n");
  for (const RunResult& result : results) {
    const RunMetrics& metrics = result.metrics;
    absl::StrAppend(&html, "<tr><td>", EscapeHtml(NameOfRun(result)), "</td><td>",
                    metrics.completed, "</td><td>", metrics.failed, "</td><td>", metrics.cancelled,
                    "</td>", Cell(result.record.duration_s), Cell(metrics.request_throughput),
                    metrics.request_goodput ? Cell(*metrics.request_goodput) : "<td></td>",
                    Cell(metrics.output_throughput));
    for (const auto& [metric, summary] : metrics.latencies) {
      for (const auto& [percent, value] : summary.percentiles) absl::StrAppend(&html, Cell(value));
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return html + "</table>\n";
}

// One line for each percentile of a metric, over the runs' rates.
std::string LatencyAgainstRate(const std::vector<const RunResult*>& runs, size_t metric_index) {
  const auto& [metric, first] = runs.front()->metrics.latencies[metric_index];
  std::vector<Series> series;
  for (size_t i = 0; i < first.percentiles.size(); ++i) {
    Series& line = series.emplace_back();
    line.name = PercentileKey(first.percentiles[i].first);
    for (const RunResult* run : runs) {
      line.points.emplace_back(RateOf(*run),
                               run->metrics.latencies[metric_index].second.percentiles[i].second);
    }
  }
  const MetricText& text = TextOf(metric);
  return LineChart(
      {absl::StrCat(text.title, " against rate"), "requests/s", absl::StrCat(text.label, " ms")},
      series);
}

std::string AgainstRate(const std::vector<RunResult>& results) {
  std::vector<const RunResult*> runs;
  for (const RunResult& result : results) runs.push_back(&result);
  std::sort(runs.begin(), runs.end(),
            [](const RunResult* a, const RunResult* b) { return RateOf(*a) < RateOf(*b); });
  std::string html = "<h2>Latency against rate</h2>\n";
  for (size_t i = 0; i < runs.front()->metrics.latencies.size(); ++i) {
    absl::StrAppend(&html, LatencyAgainstRate(runs, i));
  }
  Series output{"output", {}};
  for (const RunResult* run : runs) {
    output.points.emplace_back(RateOf(*run), run->metrics.output_throughput);
  }
  return absl::StrCat(html,
                      LineChart({"Throughput against rate", "requests/s", "tokens/s"}, {output}));
}

std::string Timeline(const RunRecord& record) {
  Series waiting{"waiting", {}}, running{"running", {}}, kv{"KV blocks in use", {}},
      tokens{"output", {}};
  for (const StatsPoint& point : record.stats) {
    waiting.points.emplace_back(point.at_s, static_cast<double>(point.waiting));
    running.points.emplace_back(point.at_s, static_cast<double>(point.running));
    kv.points.emplace_back(point.at_s, point.kv_used * 100);
  }
  const double width = record.duration_s > 0 ? TickStep(record.duration_s, kTimelineIntervals) : 1;
  const std::vector<double> counts = TokensPerInterval(record, width);
  for (size_t i = 0; i < counts.size(); ++i) {
    tokens.points.emplace_back(width * static_cast<double>(i), counts[i] / width);
  }
  return absl::StrCat(
      LineChart({"Requests in the server", "s from the start", "requests"}, {waiting, running}),
      LineChart({"KV cache", "s from the start", "% of the blocks"}, {kv}),
      LineChart({"Tokens per second, received", "s from the start", "tokens/s"}, {tokens}));
}

std::string RunSection(const RunResult& result, bool open) {
  std::string html =
      absl::StrCat("<details", open ? " open" : "", "><summary>", EscapeHtml(NameOfRun(result)),
                   "</summary>\n<pre>", EscapeHtml(FormatResult(result)), "</pre>\n");
  for (const auto& [metric, summary] : result.metrics.latencies) {
    const MetricText& text = TextOf(metric);
    absl::StrAppend(&html, Histogram({text.title, absl::StrCat(text.label, " ms"), "count"},
                                     MetricValues(result.record.samples, metric)));
  }
  return absl::StrCat(html, Timeline(result.record), "</details>\n");
}

}  // namespace

std::string HtmlReport(const std::vector<RunResult>& results, const std::string& command_line) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>Load report</title><style>",
      kStyle, "</style></head><body>\n<h1>Load report</h1>\n");
  if (results.empty()) return html + "<p>No run.</p></body></html>\n";
  absl::StrAppend(&html, "<p>", EscapeHtml(results.front().model), ", ",
                  EscapeHtml(results.front().date), "</p>\n<pre>", EscapeHtml(command_line),
                  "</pre>\n", Table(results), AgainstRate(results), "<h2>Runs</h2>\n");
  for (const RunResult& result : results) {
    absl::StrAppend(&html, RunSection(result, results.size() == 1));
  }
  return absl::StrCat(html, "<h2>Definitions</h2>\n<pre>", EscapeHtml(FormatDefinitions()),
                      "</pre>\n</body></html>\n");
}

}  // namespace tandem::load
