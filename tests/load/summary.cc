#include "tests/load/summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace tandem::load {

double Percentile(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (rank - static_cast<double>(below));
}

Summary Summarize(std::vector<double> values, const std::vector<double>& percents) {
  Summary summary;
  std::sort(values.begin(), values.end());
  summary.median = Percentile(values, 50);
  for (const double percent : percents) {
    summary.percentiles.emplace_back(percent, Percentile(values, percent));
  }
  if (values.empty()) return summary;
  const auto count = static_cast<double>(values.size());
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.std = std::sqrt(squares / count);
  return summary;
}

}  // namespace tandem::load
