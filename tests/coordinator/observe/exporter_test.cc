#include "coordinator/observe/exporter.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "coordinator/observe/status_json.h"

namespace tandem::coordinator {
namespace {

Observation Busy() {
  Observation observed{.state = {.ranks = {{.stage = RankProgress::Stage::kReady}, {}}},
                       .memory = {.resident_bytes = 5 << 20, .allocated_bytes = 3 << 20},
                       .rank_times = {{.parts = {1'500'000, 0, 0, 0}, .collectives = 125'000},
                                      {.parts = {0, 0, 0, 250'000}}},
                       .engine = Observation::Engine{}};
  observed.engine->stats.total_blocks = 8;
  observed.engine->stats.free_blocks = 6;
  observed.engine->stats.running = 3;
  observed.engine->stats.last_pause_ms = 1250;
  observed.engine->timings.wait_ns = 2'500'000'000;
  observed.engine->block_size = 16;
  return observed;
}

std::string TextOf(const Observation& observed, const RequestMetrics& requests) {
  return prometheus::TextSerializer().Serialize(MakeFamilies(observed, requests));
}

TEST(ExporterTest, WritesWhatFollowsFromOtherNumbers) {
  RequestMetrics requests;
  requests.time_to_first_token.Record(std::chrono::milliseconds(3));
  requests.ended[RequestMetrics::kAbort] = 4;
  requests.refused.Add(absl::StatusCode::kResourceExhausted, RefusalCounts::kQueueFull);
  const std::string text = TextOf(Busy(), requests);
  for (const char* line :
       {"# TYPE tandem_kv_cache_usage_ratio gauge\ntandem_kv_cache_usage_ratio 0.25\n",
        "tandem_cache_config_info{block_size=\"16\",num_gpu_blocks=\"8\"} 1\n",
        "tandem_num_requests_running 3\n",
        "tandem_last_pause_seconds 1.25\n",
        "tandem_step_seconds_total{part=\"wait\"} 2.5\n",
        "tandem_worker_step_seconds_total{rank=\"0\",part=\"receive\"} 1.5\n",
        "tandem_worker_step_seconds_total{rank=\"1\",part=\"wait\"} 0.25\n",
        "tandem_worker_collective_seconds_total{rank=\"0\"} 0.125\n",
        "tandem_request_success_total{finished_reason=\"abort\"} 4\n",
        "tandem_requests_refused_total{reason=\"queue_full\"} 1\n",
        "tandem_requests_refused_total{reason=\"invalid\"} 0\n",
        "tandem_server_state{state=\"waiting\"} 1\n",
        "tandem_server_state{state=\"ready\"} 0\n",
        "tandem_ranks_ready 1\n",
        "tandem_resident_memory_bytes 5242880\n",
        "tandem_heap_allocated_bytes 3145728\n",
        "tandem_time_to_first_token_seconds_bucket{le=\"0.002\"} 0\n",
        "tandem_time_to_first_token_seconds_bucket{le=\"0.005\"} 1\n",
        "tandem_time_to_first_token_seconds_bucket{le=\"+Inf\"} 1\n",
        "tandem_time_to_first_token_seconds_sum 0.003\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  }
}

TEST(ExporterTest, WhatARankDoesNotMeasureIsAbsent) {
  RankTimes times(2);
  times.Add(0, {.wait_us = 700});
  times.Add(1, {.wait_us = 700, .collective_us = 0});
  times.Add(1, {.wait_us = 300, .collective_us = 40});
  times.Add(1, {.wait_us = 300});
  const std::vector<RankTimes::Sums> sums = times.Get();
  EXPECT_EQ(sums[0].parts[3], 700);
  EXPECT_EQ(sums[0].collectives, std::nullopt);
  EXPECT_EQ(sums[1].parts[3], 1300);
  EXPECT_EQ(sums[1].collectives, 40);
  Observation observed = Busy();
  observed.rank_times = sums;
  const std::string text = TextOf(observed, RequestMetrics());
  EXPECT_EQ(text.find("tandem_worker_collective_seconds_total{rank=\"0\"}"), std::string::npos);
  EXPECT_NE(text.find("tandem_worker_collective_seconds_total{rank=\"1\"} 4e-05\n"),
            std::string::npos)
      << text;
}

TEST(ExporterTest, AGatewayIsShownWhereThereIsOne) {
  Observation observed = Busy();
  EXPECT_EQ(TextOf(observed, RequestMetrics()).find("gateway"), std::string::npos);
  for (const bool up : {false, true}) {
    observed.http_gateway_up = up;
    const std::string text = TextOf(observed, RequestMetrics());
    const std::string line = up ? "\ntandem_http_gateway_up 1\n" : "\ntandem_http_gateway_up 0\n";
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(ExporterTest, EachFamilyIsThereOnceWithAHelp) {
  std::set<std::string> names;
  for (const prometheus::MetricFamily& family : MakeFamilies(Busy(), RequestMetrics())) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_FALSE(family.metric.empty()) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter)
        << family.name;
  }
  EXPECT_TRUE(names.contains("tandem_prefix_cache_queries_total"));
}

TEST(ExporterTest, AServerThatLoadsHasNoNumbersOfItsEngine) {
  Observation loading = Busy();
  loading.engine.reset();
  const std::string text = TextOf(loading, RequestMetrics());
  EXPECT_EQ(text.find("tandem_num_requests_running"), std::string::npos);
  EXPECT_NE(text.find("tandem_server_state{state=\"waiting\"} 1\n"), std::string::npos) << text;
}

TEST(ExporterTest, TheStatusHasTheSameNumbers) {
  RequestMetrics requests;
  requests.inter_token_latency.Record(std::chrono::milliseconds(2), 5);
  Observation observed = Busy();
  observed.state.ranks[1] = {
      .stage = RankProgress::Stage::kLoading, .done_bytes = 1, .total_bytes = 4};
  // A name as a model file may have it.
  const auto status = nlohmann::json::parse(
      StatusJson("a \"model\" \xff", observed.state, MakeFamilies(observed, requests)));
  EXPECT_EQ(status["model"], "a \"model\" \xef\xbf\xbd");
  EXPECT_EQ(status["state"], "loading");
  EXPECT_EQ(status["text"], "loading 62%");
  EXPECT_EQ(status["ranks"][0]["stage"], "ready");
  EXPECT_EQ(status["ranks"][0]["loaded"], 1);
  EXPECT_EQ(status["ranks"][1]["loaded"], 0.25);
  EXPECT_EQ(status["metrics"]["tandem_num_requests_running"][0]["value"], 3);
  EXPECT_EQ(status["metrics"]["tandem_request_success_total"][1]["labels"]["finished_reason"],
            "length");
  const auto& latency = status["histograms"]["tandem_inter_token_latency_seconds"];
  EXPECT_EQ(latency["counts"].size(), latency["bounds"].size() + 1);
  EXPECT_EQ(latency["counts"].back(), 5);
  EXPECT_DOUBLE_EQ(latency["sum"], 0.01);
}

}  // namespace
}  // namespace tandem::coordinator
