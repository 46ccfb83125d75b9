// The forms of a result: JSON, text, SVG, HTML.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/load/html_report.h"
#include "tests/load/run_result.h"
#include "tests/load/svg_chart.h"

namespace tandem::load {
namespace {

RunResult Result(double rate) {
  Sample good;
  good.intended_s = 1;
  good.sent_s = 1.5;
  good.end_s = 4;
  good.arrivals = {{2, 1}, {3, 2}, {4, 1}};
  good.prompt_tokens = 7;
  good.output_tokens = 4;
  good.outcome = Outcome::kCompleted;
  Sample failed;
  failed.error = "<no> \"server\" & more";
  RunResult result;
  result.date = "20261122-050000";
  result.model = "a <model>";
  result.record.samples = {good, failed};
  result.record.duration_s = 4;
  result.record.request_rate = rate;
  result.record.max_concurrency = 3;
  result.record.not_sent = 1;
  result.record.stats = {{.at_s = 0.5, .waiting = 2, .running = 1, .kv_used = 0.25}};
  result.metrics = ComputeMetrics(
      result.record, {MetricName::kTtft, MetricName::kTpot, MetricName::kItl, MetricName::kE2el},
      {50, 99, 99.9}, {.ttft_ms = 1000});
  return result;
}

TEST(ResultJsonTest, HasVllmsKeys) {
  const auto json = nlohmann::json::parse(ToJson(Result(kUnlimited), LoadOptions()));
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["max_concurrency"], 3);
  EXPECT_EQ(json["num_prompts"], 3);
  EXPECT_EQ(json["completed"], 1);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["not_sent"], 1);
  EXPECT_EQ(json["duration"], 4);
  EXPECT_EQ(json["total_input_tokens"], 7);
  EXPECT_EQ(json["total_output_tokens"], 4);
  EXPECT_EQ(json["request_throughput"], 0.25);
  EXPECT_EQ(json["request_goodput"], 0.25);
  EXPECT_EQ(json["output_throughput"], 1);
  EXPECT_EQ(json["total_token_throughput"], 2.75);
  EXPECT_EQ(json["mean_ttft_ms"], 1000);
  EXPECT_EQ(json["median_itl_ms"], 1000);
  EXPECT_EQ(json["std_e2el_ms"], 0);
  for (const char* key : {"p50_tpot_ms", "p99_ttft_ms", "p99.9_e2el_ms"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_FALSE(json.contains("ttfts"));
}

TEST(ResultJsonTest, DetailsAreInSecondsForEveryRequest) {
  LoadOptions options;
  options.save_detailed = true;
  const auto json = nlohmann::json::parse(ToJson(Result(2), options));
  EXPECT_EQ(json["request_rate"], 2);
  EXPECT_EQ(json["ttfts"], (std::vector<double>{1, 0}));
  EXPECT_EQ(json["latencies"], (std::vector<double>{3, 0}));
  EXPECT_EQ(json["queue_times"], (std::vector<double>{0.5, 0}));
  EXPECT_EQ(json["start_times"], (std::vector<double>{1, 0}));
  EXPECT_EQ(json["itls"], (std::vector<std::vector<double>>{{1, 1}, {}}));
  EXPECT_EQ(json["output_lens"], (std::vector<int>{4, 0}));
  EXPECT_EQ(json["outcomes"], (std::vector<std::string>{"completed", "failed"}));
  EXPECT_EQ(json["errors"][1], "<no> \"server\" & more");
  EXPECT_EQ(json["server_stats"][0]["kv_used"], 0.25);
}

TEST(ResultTextTest, SaysWhatHappened) {
  const std::string text = FormatResult(Result(2));
  for (const char* part :
       {"Successful requests:                         1\n",
        "Failed requests:                             1\n", "error: <no> \"server\" & more",
        "Requests not sent:", "Request goodput (req/s):                     0.25\n",
        "P99.9 ITL (ms):                              1000.00\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
  }
}

TEST(SvgChartTest, ScalesItsPoints) {
  const std::string svg =
      LineChart({"Title", "x", "y"}, {{"one", {{0, 0}, {10, 100}}}, {"two", {{5, 50}}}});
  // The frame: 62 to 548 and 44 to 220; the y axis ends at 1.05 times the largest value.
  EXPECT_NE(svg.find("62.0,220.0 548.0,52.4"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>two: 50 at 5</title>"), std::string::npos);
  EXPECT_NE(LineChart({"T", "x", "y"}, {}).find("no data"), std::string::npos);
  EXPECT_NE(LineChart({"T", "x", "y"}, {{"flat", {{0, 0}}}}).find("62.0,220.0"), std::string::npos);
}

TEST(SvgChartTest, HistogramCountsEveryValue) {
  const std::string svg = Histogram({"T", "x", "count"}, {0, 0.5, 10, 40});
  EXPECT_NE(svg.find("<title>2 from 0 to 1</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>1 from 10 to 11</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>1 from 39 to 40</title>"), std::string::npos);
  EXPECT_NE(Histogram({"T", "x", "count"}, {}).find("no data"), std::string::npos);
}

TEST(SvgChartTest, TicksAreRound) {
  EXPECT_DOUBLE_EQ(TickStep(100, 6), 20);
  EXPECT_DOUBLE_EQ(TickStep(0.07, 6), 0.02);
  EXPECT_DOUBLE_EQ(TickStep(6, 6), 1);
  EXPECT_DOUBLE_EQ(TickStep(61, 6), 20);
}

TEST(HtmlReportTest, IsCompleteAndNeedsNoNetwork) {
  const std::string html = HtmlReport({Result(2), Result(kUnlimited)}, "tandem_load --label <x>");
  for (const char* part :
       {"Time to first token against rate", "Throughput against rate", "Inter-token latency",
        "Requests in the server", "KV cache", "Tokens per second", "Definitions",
        "tandem_load --label &lt;x&gt;", "a &lt;model&gt;", "rate inf, 3 in flight",
        "&lt;no&gt; &quot;server&quot; &amp; more", "</html>"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const char* part : {"http:", "https:", "src=", "@import", "url(", "<no>"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
  EXPECT_NE(HtmlReport({}, "").find("No run"), std::string::npos);
}

}  // namespace
}  // namespace tandem::load
