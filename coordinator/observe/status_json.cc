#include "coordinator/observe/status_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/version.h"

namespace tandem::coordinator {
namespace {

using nlohmann::json;

json Ranks(const std::vector<RankProgress>& ranks) {
  json all = json::array();
  for (const RankProgress& rank : ranks) {
    const bool ready = rank.stage == RankProgress::Stage::kReady;
    const double loaded = rank.total_bytes == 0 ? 0
                                                : static_cast<double>(rank.done_bytes) /
                                                      static_cast<double>(rank.total_bytes);
    all.push_back({{"stage", NameOf(rank.stage)}, {"loaded", ready ? 1 : loaded}});
  }
  return all;
}

json HistogramOf(const prometheus::ClientMetric::Histogram& histogram) {
  json bounds = json::array(), counts = json::array();
  for (const auto& bucket : histogram.bucket) {
    if (std::isfinite(bucket.upper_bound)) bounds.push_back(bucket.upper_bound);
    counts.push_back(bucket.cumulative_count);
  }
  return {{"bounds", bounds}, {"counts", counts}, {"sum", histogram.sample_sum}};
}

json SamplesOf(const prometheus::MetricFamily& family) {
  const bool counts = family.type == prometheus::MetricType::Counter;
  json samples = json::array();
  for (const prometheus::ClientMetric& metric : family.metric) {
    json labels = json::object();
    for (const auto& label : metric.label) labels[label.name] = label.value;
    samples.push_back(
        {{"labels", labels}, {"value", counts ? metric.counter.value : metric.gauge.value}});
  }
  return samples;
}

}  // namespace

std::string StatusJson(const std::string& model, const ServerView& state,
                       const std::vector<prometheus::MetricFamily>& families) {
  json metrics = json::object(), histograms = json::object();
  for (const prometheus::MetricFamily& family : families) {
    if (family.type == prometheus::MetricType::Histogram) {
      histograms[family.name] = HistogramOf(family.metric.at(0).histogram);
    } else {
      metrics[family.name] = SamplesOf(family);
    }
  }
  const json status = {
      {"model", model},          {"version", BuildVersion()},   {"state", NameOf(state.phase())},
      {"text", state.Text()},    {"ranks", Ranks(state.ranks)}, {"metrics", metrics},
      {"histograms", histograms}};
  return status.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tandem::coordinator
