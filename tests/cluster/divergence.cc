#include "tests/cluster/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tandem::testing {
namespace {

double LogSumExp(const std::vector<float>& row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float value : row) sum += std::exp(value - top);
  return top + std::log(sum);
}

}  // namespace

double Divergence::rms() const { return std::sqrt(sum_squares / static_cast<double>(values)); }
double Divergence::mean_kl() const { return sum_kl / static_cast<double>(rows); }

void Divergence::Add(const std::vector<float>& found, const std::vector<float>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double diff = std::fabs(double{found[i]} - double{wanted[i]});
    if (!(diff <= max_abs)) max_abs = diff;  // a NaN counts
    sum_squares += diff * diff;
  }
  const double found_norm = LogSumExp(found);
  const double wanted_norm = LogSumExp(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double log_p = wanted[i] - wanted_norm;
    sum_kl += std::exp(log_p) * (log_p - (found[i] - found_norm));
  }
  values += wanted.size();
  ++rows;
  same_top += std::max_element(found.begin(), found.end()) - found.begin() ==
              std::max_element(wanted.begin(), wanted.end()) - wanted.begin();
}

void AddGolden(WorkerDriver& driver, const GoldenModel& golden, uint32_t chunk,
               Divergence& divergence) {
  for (const GoldenCase& one : golden.cases) {
    driver.Reset();
    auto logits = driver.Prefill(one.tokens, one.positions, chunk);
    ASSERT_TRUE(logits.ok()) << logits.status();
    ASSERT_EQ(logits->size(), one.logits.size());
    for (size_t row = 0; row < logits->size(); ++row) {
      ASSERT_EQ((*logits)[row].size(), one.logits[row].size());
      divergence.Add((*logits)[row], one.logits[row]);
    }
  }
}

}  // namespace tandem::testing
