#include "tests/load/metrics.h"

#include <algorithm>
#include <utility>

namespace tandem::load {
namespace {

constexpr double kMillis = 1000;

bool IsGood(const Sample& sample, const Objectives& objectives) {
  if (!sample.has_latency()) return false;
  const auto within = [](double seconds, const std::optional<double>& limit_ms) {
    return !limit_ms.has_value() || seconds * kMillis <= *limit_ms;
  };
  return within(sample.ttft_s(), objectives.ttft_ms) &&
         within(sample.tpot_s(), objectives.tpot_ms) && within(sample.e2el_s(), objectives.e2el_ms);
}

size_t MaxConcurrent(const std::vector<Sample>& samples) {
  std::vector<std::pair<double, int>> changes;  // an end before a start of the same moment
  for (const Sample& sample : samples) {
    changes.emplace_back(sample.sent_s, 1);
    changes.emplace_back(sample.end_s, -1);
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0;
  int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<size_t>(most);
}

void Count(const std::vector<Sample>& samples, RunMetrics& metrics) {
  for (const Sample& sample : samples) {
    metrics.failed += sample.outcome == Outcome::kFailed;
    metrics.cancelled += sample.outcome == Outcome::kCancelled;
    metrics.cut += sample.outcome == Outcome::kCut;
    if (!sample.completed()) continue;
    ++metrics.completed;
    metrics.total_input_tokens += sample.prompt_tokens;
    metrics.total_output_tokens += sample.output_tokens;
  }
}

}  // namespace

std::vector<double> MetricValues(const std::vector<Sample>& samples, MetricName metric) {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    if (!sample.has_latency()) continue;
    switch (metric) {
      case MetricName::kTtft:
        values.push_back(sample.ttft_s() * kMillis);
        break;
      case MetricName::kTpot:
        if (sample.output_tokens > 1) values.push_back(sample.tpot_s() * kMillis);
        break;
      case MetricName::kItl:
        for (size_t i = 1; i < sample.arrivals.size(); ++i) {
          values.push_back((sample.arrivals[i].at_s - sample.arrivals[i - 1].at_s) * kMillis);
        }
        break;
      case MetricName::kE2el:
        values.push_back(sample.e2el_s() * kMillis);
        break;
    }
  }
  return values;
}

std::vector<double> TokensPerInterval(const RunRecord& record, double width_s) {
  std::vector<double> tokens(static_cast<size_t>(record.duration_s / width_s) + 1, 0);
  for (const Sample& sample : record.samples) {
    for (const TokenArrival& arrival : sample.arrivals) {
      const auto interval = static_cast<size_t>(std::max(arrival.at_s, 0.0) / width_s);
      tokens[std::min(interval, tokens.size() - 1)] += arrival.tokens;
    }
  }
  return tokens;
}

RunMetrics ComputeMetrics(const RunRecord& record, const std::vector<MetricName>& metrics,
                          const std::vector<double>& percents, const Objectives& objectives) {
  RunMetrics result;
  Count(record.samples, result);
  const auto per_second = [&](auto count) {
    return record.duration_s > 0 ? static_cast<double>(count) / record.duration_s : 0;
  };
  result.request_throughput = per_second(result.completed);
  result.output_throughput = per_second(result.total_output_tokens);
  result.total_token_throughput =
      per_second(result.total_input_tokens + result.total_output_tokens);
  if (objectives.any()) {
    const auto count = [&](auto is_counted) {
      return std::count_if(record.samples.begin(), record.samples.end(), is_counted);
    };
    const auto good = count([&](const Sample& sample) { return IsGood(sample, objectives); });
    const auto of = count([](const Sample& sample) { return sample.has_latency(); });
    result.request_goodput = per_second(good);
    if (of > 0) result.good_share = static_cast<double>(good) / static_cast<double>(of);
  }
  const std::vector<double> tokens = TokensPerInterval(record, 1);
  result.max_output_tokens_per_s = *std::max_element(tokens.begin(), tokens.end());
  result.max_concurrent_requests = MaxConcurrent(record.samples);
  for (const MetricName metric : metrics) {
    result.latencies.emplace_back(metric,
                                  Summarize(MetricValues(record.samples, metric), percents));
  }
  return result;
}

}  // namespace tandem::load
