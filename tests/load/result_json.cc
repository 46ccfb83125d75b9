#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/load/run_result.h"

namespace tandem::load {
namespace {

using Json = nlohmann::ordered_json;

Json RateJson(double rate) { return std::isinf(rate) ? Json("inf") : Json(rate); }

void AddSettings(const RunResult& result, const LoadOptions& options, Json& json) {
  json["date"] = result.date;
  json["endpoint_type"] = config::NameOf(options.backend);
  json["backend"] = config::NameOf(options.backend);
  json["simulated"] = !options.simulate.empty();
  json["label"] = options.label.empty() ? Json() : Json(options.label);
  json["model_id"] = result.model;
  json["tokenizer_id"] = nullptr;
  json["dataset_name"] = config::NameOf(options.dataset.name);
  json["seed"] = options.dataset.seed;
  json["num_prompts"] = result.record.samples.size() + result.record.not_sent;
  json["request_rate"] = RateJson(result.record.request_rate);
  json["burstiness"] = RateJson(result.record.burstiness);
  json["max_concurrency"] =
      result.record.max_concurrency ? Json(*result.record.max_concurrency) : Json();
}

void AddFigures(const RunResult& result, Json& json) {
  const RunMetrics& metrics = result.metrics;
  json["end"] = Name(result.record.end);
  json["duration"] = result.record.duration_s;
  json["completed"] = metrics.completed;
  json["failed"] = metrics.failed;
  json["cancelled"] = metrics.cancelled;
  json["cut"] = metrics.cut;
  json["not_sent"] = result.record.not_sent;
  json["total_input_tokens"] = metrics.total_input_tokens;
  json["total_output_tokens"] = metrics.total_output_tokens;
  json["request_throughput"] = metrics.request_throughput;
  json["request_goodput"] = metrics.request_goodput ? Json(*metrics.request_goodput) : Json();
  json["output_throughput"] = metrics.output_throughput;
  json["total_token_throughput"] = metrics.total_token_throughput;
  json["max_output_tokens_per_s"] = metrics.max_output_tokens_per_s;
  json["max_concurrent_requests"] = metrics.max_concurrent_requests;
  for (const auto& [metric, summary] : metrics.latencies) {
    const std::string key = absl::StrCat("_", TextOf(metric).key, "_ms");
    json["mean" + key] = summary.mean;
    json["median" + key] = summary.median;
    json["std" + key] = summary.std;
    for (const auto& [percent, value] : summary.percentiles) {
      json[PercentileKey(percent) + key] = value;
    }
  }
}

// Times in seconds; 0 where a request has none.
void AddSample(const Sample& sample, Json& json) {
  const bool any = !sample.arrivals.empty();
  Json itls = Json::array();
  for (size_t i = 1; i < sample.arrivals.size(); ++i) {
    itls.push_back(sample.arrivals[i].at_s - sample.arrivals[i - 1].at_s);
  }
  json["input_lens"].push_back(sample.prompt_tokens);
  json["output_lens"].push_back(sample.completed() ? sample.output_tokens : 0);
  json["ttfts"].push_back(any ? sample.ttft_s() : 0);
  json["itls"].push_back(std::move(itls));
  json["latencies"].push_back(any ? sample.e2el_s() : 0);
  json["start_times"].push_back(sample.intended_s);
  json["queue_times"].push_back(sample.sent_s - sample.intended_s);
  json["errors"].push_back(sample.error);
  json["outcomes"].push_back(Name(sample.outcome));
  json["slow_readers"].push_back(sample.slow_reader);
}

void AddDetails(const RunRecord& record, Json& json) {
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times",
                          "queue_times", "errors", "outcomes", "slow_readers"}) {
    json[key] = Json::array();
  }
  for (const Sample& sample : record.samples) AddSample(sample, json);
  json["server_stats"] = Json::array();
  for (const StatsPoint& point : record.stats) {
    json["server_stats"].push_back({{"at_s", point.at_s},
                                    {"waiting", point.waiting},
                                    {"running", point.running},
                                    {"kv_used", point.kv_used}});
  }
}

}  // namespace

std::string ToJson(const RunResult& result, const LoadOptions& options) {
  Json json;
  AddSettings(result, options, json);
  AddFigures(result, json);
  if (options.save_detailed) AddDetails(result.record, json);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem::load
