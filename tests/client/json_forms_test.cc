// What `info --json` and `stats --json` print.
#include "client/json_forms.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "client/stats_text.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/info.h"

namespace tandem::client {
namespace {

TEST(InfoJson, DescribesTheFileAndTheNeedsOfRanks) {
  const auto file = gguf::File::Open("tests/golden/arch/llama/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto spec = model::BuildSpec(*file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto info = model::DescribeModel(*file, *spec);
  ASSERT_TRUE(info.ok()) << info.status();
  const auto json = nlohmann::json::parse(ToJson(*info));
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["layers"], 3);
  EXPECT_EQ(json["hidden_size"], 128);
  EXPECT_EQ(json["heads"], 8);
  EXPECT_EQ(json["kv_heads"], 2);
  EXPECT_EQ(json["file_bytes"], file->size_bytes());
  EXPECT_EQ(json["tensors"], file->tensors().size());
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 16u);
  ASSERT_EQ(json["tensor_parallel"].size(), 4u);
  EXPECT_EQ(json["tensor_parallel"][1]["size"], 2);
  EXPECT_EQ(json["tensor_parallel"][1]["possible"], true);
  EXPECT_EQ(json["tensor_parallel"][1]["heads_per_rank"], 4);
  EXPECT_GT(json["tensor_parallel"][0]["weight_bytes_per_rank"],
            json["tensor_parallel"][1]["weight_bytes_per_rank"]);
}

TEST(InfoJson, MemoryIsAnsweredWhereItWasAskedAbout) {
  model::ModelInfo info;
  info.parallel.push_back({.size = 1, .possible = true, .why_not = ""});
  const auto silent = nlohmann::json::parse(ToJson(info));
  EXPECT_FALSE(silent.contains("memory_bytes"));
  EXPECT_FALSE(silent["tensor_parallel"][0].contains("tokens_that_fit"));
  info.query.memory_bytes = 1000;
  info.query.kv_type = tensor::Type::kBF16;
  info.parallel[0].tokens_that_fit = 7;
  info.spec.kv_groups = {{.window_tokens = 0, .layers = {0}}, {.window_tokens = 16, .layers = {1}}};
  const auto json = nlohmann::json::parse(ToJson(info));
  EXPECT_EQ(json["memory_bytes"], 1000);
  EXPECT_EQ(json["kv_cache_type"], "BF16");
  EXPECT_EQ(json["tensor_parallel"][0]["tokens_that_fit"], 7);
  EXPECT_EQ(json["windows"],
            nlohmann::json::parse(R"([{"window_tokens": 16, "layers": 1, "chunked": false}])"));
}

TEST(InfoJson, AnImpossibleSizeHasItsReason) {
  model::ModelInfo info;
  info.parallel.push_back({.size = 4, .possible = false, .why_not = "6 heads"});
  const auto json = nlohmann::json::parse(ToJson(info));
  EXPECT_EQ(json["tensor_parallel"][0],
            nlohmann::json({{"size", 4}, {"possible", false}, {"why_not", "6 heads"}}));
}

TEST(InfoJson, ANameThatIsNotUtf8IsStillJson) {
  model::ModelInfo info;
  info.spec.name = "a\xff\n";
  EXPECT_EQ(nlohmann::json::parse(ToJson(info))["name"], "a\uFFFD\n");
}

v1::GetStatsResponse Stats() {
  v1::GetStatsResponse stats;
  const auto add = [&](const char* name, const char* help, int64_t value) {
    v1::Metric& metric = *stats.add_metrics();
    metric.set_name(name);
    metric.set_help(help);
    metric.set_value(value);
  };
  add("tandem_num_requests_waiting", "requests that wait", 0);
  add("tandem_steps_total", "steps computed", int64_t{1} << 40);
  return stats;
}

TEST(StatsJson, HasEveryMetricAsANumber) {
  EXPECT_EQ(ToJson(Stats()),
            "{\"tandem_num_requests_waiting\":0,\"tandem_steps_total\":1099511627776}");
}

TEST(StatsText, HasALinePerMetric) {
  EXPECT_EQ(FormatStats(Stats()),
            "tandem_num_requests_waiting                         0  requests that wait\n"
            "tandem_steps_total                       1099511627776  steps computed\n");
}

}  // namespace
}  // namespace tandem::client
