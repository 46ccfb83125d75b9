#include "client/stats_text.h"

#include "absl/strings/str_format.h"

namespace tandem::client {

std::string FormatStats(const v1::GetStatsResponse& stats) {
  std::string text;
  for (const v1::Metric& metric : stats.metrics()) {
    absl::StrAppendFormat(&text, "%-40s %12d  %s\n", metric.name(), metric.value(), metric.help());
  }
  return text;
}

}  // namespace tandem::client
