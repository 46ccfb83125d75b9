#include "tests/load/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem::load {
namespace {

const std::vector<MetricName> kAll = {MetricName::kTtft, MetricName::kTpot, MetricName::kItl,
                                      MetricName::kE2el};

// Completed, with tokens at the times.
Sample Completed(double intended_s, const std::vector<double>& times) {
  Sample sample;
  sample.intended_s = intended_s;
  sample.sent_s = intended_s;
  for (const double time : times) sample.arrivals.push_back({time, 1});
  sample.end_s = times.back();
  sample.prompt_tokens = 10;
  sample.output_tokens = static_cast<uint32_t>(times.size());
  sample.outcome = Outcome::kCompleted;
  return sample;
}

RunRecord Record(std::vector<Sample> samples, double duration_s) {
  RunRecord record;
  record.samples = std::move(samples);
  record.duration_s = duration_s;
  return record;
}

const Summary& Of(const RunMetrics& metrics, MetricName name) {
  for (const auto& [metric, summary] : metrics.latencies) {
    if (metric == name) return summary;
  }
  static const Summary none;
  return none;
}

TEST(SummaryTest, IsThatOfNumpy) {
  // numpy.percentile, mean, std of [15, 20, 35, 40, 50].
  const Summary summary = Summarize({40, 15, 50, 20, 35}, {0, 40, 90, 100});
  EXPECT_DOUBLE_EQ(summary.mean, 32);
  EXPECT_DOUBLE_EQ(summary.median, 35);
  EXPECT_NEAR(summary.std, 12.884098726725126, 1e-12);
  EXPECT_DOUBLE_EQ(summary.percentiles[0].second, 15);
  EXPECT_DOUBLE_EQ(summary.percentiles[1].second, 29);
  EXPECT_DOUBLE_EQ(summary.percentiles[2].second, 46);
  EXPECT_DOUBLE_EQ(summary.percentiles[3].second, 50);
  EXPECT_EQ(Summarize({}, {50}).percentiles[0].second, 0);
  EXPECT_EQ(Summarize({3}, {99}).percentiles[0].second, 3);
}

TEST(MetricsTest, LatenciesCountFromTheIntendedTime) {
  Sample late = Completed(1, {3, 4, 6});
  late.sent_s = 2;
  const RunMetrics metrics = ComputeMetrics(Record({late}, 6), kAll, {50}, {});
  EXPECT_DOUBLE_EQ(Of(metrics, MetricName::kTtft).mean, 2000);
  EXPECT_DOUBLE_EQ(Of(metrics, MetricName::kTpot).mean, 1500);
  EXPECT_DOUBLE_EQ(Of(metrics, MetricName::kItl).mean, 1500);
  EXPECT_DOUBLE_EQ(Of(metrics, MetricName::kE2el).mean, 5000);
}

TEST(MetricsTest, ThroughputsAreOfCompletedRequests) {
  Sample failed;
  failed.output_tokens = 5;
  failed.prompt_tokens = 100;
  Sample cancelled = Completed(0, {1, 2});
  cancelled.outcome = Outcome::kCancelled;
  Sample cut = cancelled;
  cut.outcome = Outcome::kCut;
  const RunMetrics metrics = ComputeMetrics(
      Record({Completed(0, {1, 2}), Completed(0, {2, 3, 4}), failed, cancelled, cut}, 5), kAll,
      {50}, {});
  EXPECT_EQ(metrics.completed, 2u);
  EXPECT_EQ(metrics.failed, 1u);
  EXPECT_EQ(metrics.cancelled, 1u);
  EXPECT_EQ(metrics.cut, 1u);
  EXPECT_EQ(metrics.total_input_tokens, 20u);
  EXPECT_EQ(metrics.total_output_tokens, 5u);
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 0.4);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 1);
  EXPECT_DOUBLE_EQ(metrics.total_token_throughput, 5);
  EXPECT_FALSE(metrics.request_goodput.has_value());
}

TEST(MetricsTest, SlowReadersHaveNoLatency) {
  Sample slow = Completed(0, {50, 90});
  slow.slow_reader = true;
  const RunMetrics metrics =
      ComputeMetrics(Record({Completed(0, {1, 2}), slow}, 100), kAll, {100}, {.e2el_ms = 1e9});
  EXPECT_EQ(metrics.completed, 2u);
  EXPECT_DOUBLE_EQ(Of(metrics, MetricName::kTtft).percentiles[0].second, 1000);
  EXPECT_DOUBLE_EQ(*metrics.request_goodput, 0.01);
}

TEST(MetricsTest, AnAnswerOfOneTokenHasNoTpotButCanBeGood) {
  const RunRecord record = Record({Completed(0, {1})}, 1);
  const RunMetrics metrics = ComputeMetrics(record, kAll, {50}, {.tpot_ms = 0});
  EXPECT_TRUE(MetricValues(record.samples, MetricName::kTpot).empty());
  EXPECT_DOUBLE_EQ(*metrics.request_goodput, 1);
}

TEST(MetricsTest, GoodputNeedsEveryObjective) {
  const RunRecord record = Record({Completed(0, {1, 2}), Completed(0, {1, 5})}, 10);
  const auto goodput = [&](const Objectives& objectives) {
    return *ComputeMetrics(record, kAll, {}, objectives).request_goodput;
  };
  EXPECT_DOUBLE_EQ(goodput({.ttft_ms = 1000}), 0.2);
  EXPECT_DOUBLE_EQ(goodput({.ttft_ms = 999}), 0);
  EXPECT_DOUBLE_EQ(goodput({.ttft_ms = 1000, .tpot_ms = 1000}), 0.1);
  EXPECT_DOUBLE_EQ(goodput({.e2el_ms = 4999}), 0.1);
}

TEST(MetricsTest, Peaks) {
  const RunRecord record =
      Record({Completed(0, {0.5, 0.6, 1.5}), Completed(0.2, {1.2}), Completed(1.5, {2})}, 2);
  const RunMetrics metrics = ComputeMetrics(record, {}, {}, {});
  EXPECT_EQ(metrics.max_concurrent_requests, 2u);
  EXPECT_DOUBLE_EQ(metrics.max_output_tokens_per_s, 2);
  EXPECT_EQ(TokensPerInterval(record, 1), (std::vector<double>{2, 2, 1}));
}

TEST(MetricsTest, OfNothingAreZero) {
  const RunMetrics metrics = ComputeMetrics(Record({}, 0), kAll, {50, 99}, {.ttft_ms = 1});
  EXPECT_EQ(metrics.completed, 0u);
  EXPECT_EQ(metrics.output_throughput, 0);
  EXPECT_EQ(*metrics.request_goodput, 0);
  EXPECT_EQ(Of(metrics, MetricName::kItl).percentiles[1].second, 0);
}

}  // namespace
}  // namespace tandem::load
