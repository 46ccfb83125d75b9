// Metric: what one number of a server's statistics is called and means. A struct of statistics
// declares each of its numbers once, in ForEach; the API, `tandem stats` and its JSON, and the
// metrics port follow from that. Plain data.
#ifndef TANDEM_COMMON_BASE_METRIC_H_
#define TANDEM_COMMON_BASE_METRIC_H_

namespace tandem {

struct Metric {
  // The current value, a sum that only grows while the server runs, or how often times fell into
  // each of some ranges.
  enum class Kind { kGauge, kCounter, kHistogram };

  const char* name;  // as it is exported: tandem_..., a counter's ends in _total
  Kind kind;
  const char* help;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_METRIC_H_
