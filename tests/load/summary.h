// Summary: mean, median, deviation and percentiles of samples, as numpy computes them.
#ifndef TANDEM_TESTS_LOAD_SUMMARY_H_
#define TANDEM_TESTS_LOAD_SUMMARY_H_

#include <utility>
#include <vector>

namespace tandem::load {

struct Summary {
  double mean = 0;
  double median = 0;
  double std = 0;                                      // of the population
  std::vector<std::pair<double, double>> percentiles;  // percent, value
};

// Interpolates linearly between the two nearest ranks. 0 of no values. REQUIRES: `sorted` is
// sorted, 0 <= percent <= 100.
double Percentile(const std::vector<double>& sorted, double percent);

// All 0 of no values.
Summary Summarize(std::vector<double> values, const std::vector<double>& percents);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SUMMARY_H_
