#include "coordinator/observe/exporter.h"

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::coordinator {
namespace {

using Kind = Metric::Kind;
using Labels = std::vector<prometheus::ClientMetric::Label>;

constexpr Metric kUsage{"tandem_kv_cache_usage_ratio", Kind::kGauge,
                        "part of the KV blocks that sequences hold"};
constexpr Metric kCacheConfig{"tandem_cache_config_info", Kind::kGauge,
                              "1; its labels are the KV cache's sizes"};
constexpr Metric kStepSeconds{"tandem_step_seconds_total", Kind::kCounter,
                              "the coordinator's time for steps, by part; wait is the workers'"};
constexpr Metric kWorkerSeconds{"tandem_worker_step_seconds_total", Kind::kCounter,
                                "a rank's time for steps, by part; wait is its device's"};
constexpr Metric kCollectiveSeconds{
    "tandem_worker_collective_seconds_total", Kind::kCounter,
    "a rank's time in collectives, waiting for other ranks included; part of submit and wait"};
constexpr Metric kState{"tandem_server_state", Kind::kGauge, "1 for the state that it is in"};
constexpr Metric kRanks{"tandem_ranks_ready", Kind::kGauge, "ranks whose worker takes steps"};
constexpr Metric kResident{"tandem_resident_memory_bytes", Kind::kGauge,
                           "the coordinator's pages in memory, shared ones included"};
constexpr Metric kAllocated{"tandem_heap_allocated_bytes", Kind::kGauge,
                            "the coordinator's memory that is allocated and not freed"};

constexpr Metric kHttpGateway{"tandem_http_gateway_up", Kind::kGauge,
                              "1 if the HTTP gateway of --http-listen gives signs of life"};

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kHistogram:
      return prometheus::MetricType::Histogram;
    default:
      return prometheus::MetricType::Gauge;
  }
}

// Collects families from visits of ForEach.
class Families {
 public:
  void operator()(int64_t value, const Metric& metric) {
    // Prometheus wants base units.
    constexpr std::string_view kMilliseconds = "_milliseconds";
    const std::string_view name = metric.name;
    if (!name.ends_with(kMilliseconds)) return Add(metric, static_cast<double>(value));
    const std::string_view stem = name.substr(0, name.size() - kMilliseconds.size());
    AddNamed(absl::StrCat(Sv(stem), "_seconds"), metric, static_cast<double>(value) / 1000, {});
  }
  void operator()(int64_t value, const Metric& metric, const char* label, const char* text) {
    Add(metric, static_cast<double>(value), {{label, text}});
  }
  void operator()(const Histogram& histogram, const Metric& metric) {
    const HistogramView view = histogram.View();
    prometheus::ClientMetric sample;
    sample.histogram.sample_sum = view.sum_s;
    for (size_t range = 0; range < view.counts.size(); ++range) {
      sample.histogram.sample_count += view.counts[range];
      const bool is_last = range == view.bounds_s.size();
      sample.histogram.bucket.push_back(
          {.cumulative_count = sample.histogram.sample_count,
           .upper_bound =
               is_last ? std::numeric_limits<double>::infinity() : view.bounds_s[range]});
    }
    FamilyOf(metric.name, metric).metric.push_back(std::move(sample));
  }
  void Add(const Metric& metric, double value, Labels labels = {}) {
    AddNamed(metric.name, metric, value, std::move(labels));
  }
  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  void AddNamed(const std::string& name, const Metric& metric, double value, Labels labels) {
    prometheus::ClientMetric sample;
    sample.label = std::move(labels);
    (metric.kind == Kind::kCounter ? sample.counter.value : sample.gauge.value) = value;
    FamilyOf(name, metric).metric.push_back(std::move(sample));
  }
  // Samples of a family come one after another.
  prometheus::MetricFamily& FamilyOf(const std::string& name, const Metric& metric) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back(
          {.name = name, .help = metric.help, .type = TypeOf(metric.kind), .metric = {}});
    }
    return families_.back();
  }

  std::vector<prometheus::MetricFamily> families_;
};

void AddEngine(const Observation::Engine& engine, Families& families) {
  const EngineStats& stats = engine.stats;
  const int64_t used = stats.total_blocks - stats.free_blocks;
  families.Add(kUsage, stats.total_blocks == 0
                           ? 0
                           : static_cast<double>(used) / static_cast<double>(stats.total_blocks));
  families.Add(kCacheConfig, 1,
               {{"block_size", std::to_string(engine.block_size)},
                {"num_gpu_blocks", std::to_string(stats.total_blocks)}});
  stats.ForEach(std::ref(families));
  const EngineStepTimings& timings = engine.timings;
  for (const auto& [part, ns] : {std::pair{"schedule", timings.schedule_ns},
                                 {"build", timings.build_ns},
                                 {"submit", timings.submit_ns},
                                 {"wait", timings.wait_ns},
                                 {"apply", timings.apply_ns},
                                 {"deliver", timings.deliver_ns}}) {
    families.Add(kStepSeconds, static_cast<double>(ns) * 1e-9, {{"part", part}});
  }
}

void AddRankTimes(const std::vector<RankTimes::Sums>& ranks, Families& families) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (size_t part = 0; part < ranks[rank].parts.size(); ++part) {
      families.Add(kWorkerSeconds, static_cast<double>(ranks[rank].parts[part]) * 1e-6,
                   {{"rank", std::to_string(rank)}, {"part", RankTimes::kParts[part]}});
    }
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].collectives.has_value()) continue;
    families.Add(kCollectiveSeconds, static_cast<double>(*ranks[rank].collectives) * 1e-6,
                 {{"rank", std::to_string(rank)}});
  }
}

void AddState(const ServerView& state, Families& families) {
  for (const ServerView::Phase phase : ServerView::kPhases) {
    families.Add(kState, phase == state.phase() ? 1 : 0, {{"state", NameOf(phase)}});
  }
  int ready = 0;
  for (const RankProgress& rank : state.ranks) ready += rank.stage == RankProgress::Stage::kReady;
  families.Add(kRanks, ready);
}

void AddMemory(const MemoryUse& memory, Families& families) {
  families.Add(kResident, static_cast<double>(memory.resident_bytes));
  families.Add(kAllocated, static_cast<double>(memory.allocated_bytes));
}

}  // namespace

std::vector<prometheus::MetricFamily> MakeFamilies(const Observation& observed,
                                                   const RequestMetrics& requests) {
  Families families;
  AddState(observed.state, families);
  if (observed.http_gateway_up.has_value()) {
    families.Add(kHttpGateway, *observed.http_gateway_up ? 1 : 0);
  }
  AddMemory(observed.memory, families);
  if (observed.engine.has_value()) AddEngine(*observed.engine, families);
  requests.ForEach(std::ref(families));
  AddRankTimes(observed.rank_times, families);
  return families.Take();
}

}  // namespace tandem::coordinator
