// The metrics of a request by name, and objectives for them.
#ifndef TANDEM_TESTS_LOAD_OBJECTIVES_H_
#define TANDEM_TESTS_LOAD_OBJECTIVES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem::load {

enum class MetricName { kTtft, kTpot, kItl, kE2el };

struct MetricText {
  MetricName name;
  const char* key;         // "ttft"
  const char* label;       // "TTFT"
  const char* title;       // "Time to first token"
  const char* definition;  // one sentence
};
inline constexpr MetricText kMetricTexts[] = {
    {MetricName::kTtft, "ttft", "TTFT", "Time to first token",
     "from the intended send time to the first message with a token"},
    {MetricName::kTpot, "tpot", "TPOT", "Time per output token (excl. 1st token)",
     "(E2EL - TTFT) / (output tokens - 1), of answers with more than one token"},
    {MetricName::kItl, "itl", "ITL", "Inter-token latency",
     "between two successive messages with tokens of one answer; all gaps of all answers"},
    {MetricName::kE2el, "e2el", "E2EL", "End-to-end latency",
     "from the intended send time to the last message with a token"},
};

// Of {"ttft,tpot", "itl"}. INVALID_ARGUMENT names the flag and what is not a metric.
absl::StatusOr<std::vector<MetricName>> ParseMetricNames(const std::vector<std::string>& texts);

// The most that a good request takes, in milliseconds.
struct Objectives {
  std::optional<double> ttft_ms{};
  std::optional<double> tpot_ms{};
  std::optional<double> e2el_ms{};

  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

// Of {"ttft:200,tpot:50"}; INVALID_ARGUMENT names the flag and what is wrong.
absl::StatusOr<Objectives> ParseObjectives(const std::vector<std::string>& texts);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_OBJECTIVES_H_
