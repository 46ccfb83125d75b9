#include "tests/load/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/load/options.h"
#include "tests/load/summary.h"

namespace tandem::load {
namespace {

constexpr size_t kCount = 20000;

std::vector<double> Gaps(double burstiness) {
  std::mt19937_64 random(1);
  const std::vector<double> times = ArrivalTimes(kCount, 5, burstiness, random);
  std::vector<double> gaps = {times.front()};
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return gaps;
}

// Standard deviation over mean: 1 / sqrt(shape) of a gamma distribution.
double Variation(const std::vector<double>& gaps) {
  const Summary summary = Summarize(gaps, {});
  return summary.std / summary.mean;
}

TEST(ArrivalTimesTest, EndAtCountOverRateAndRise) {
  std::mt19937_64 random(1);
  for (const double burstiness : {0.3, 1.0, 7.0, kUnlimited}) {
    const std::vector<double> times = ArrivalTimes(kCount, 5, burstiness, random);
    EXPECT_NEAR(times.back(), kCount / 5.0, 1e-6) << burstiness;
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end())) << burstiness;
    EXPECT_GE(times.front(), 0) << burstiness;
  }
}

TEST(ArrivalTimesTest, BurstinessIsTheShapeOfTheGaps) {
  for (const double shape : {0.25, 1.0, 16.0}) {
    EXPECT_NEAR(Variation(Gaps(shape)), 1 / std::sqrt(shape), 0.1 / std::sqrt(shape)) << shape;
  }
  // A Poisson process: exponential gaps, whose share above the mean is 1/e.
  const std::vector<double> gaps = Gaps(1);
  const auto above =
      std::count_if(gaps.begin(), gaps.end(), [](double gap) { return gap > 1 / 5.0; });
  EXPECT_NEAR(static_cast<double>(above) / kCount, std::exp(-1), 0.02);
}

TEST(ArrivalTimesTest, InfiniteBurstinessIsFixed) {
  std::mt19937_64 random(1);
  EXPECT_EQ(ArrivalTimes(4, 4, kUnlimited, random), (std::vector{0.25, 0.5, 0.75, 1.0}));
}

TEST(ArrivalTimesTest, AnInfiniteRateSendsAllAtOnce) {
  std::mt19937_64 random(1);
  EXPECT_EQ(ArrivalTimes(3, kUnlimited, 1, random), std::vector<double>(3, 0));
  EXPECT_TRUE(ArrivalTimes(0, 3, 1, random).empty());
}

TEST(ArrivalTimesTest, EvenOnesHaveATenthInEachTenthOfTheTime) {
  std::mt19937_64 random(1);
  const std::vector<double> times = EvenArrivalTimes(105, 2, 1, random);
  ASSERT_EQ(times.size(), 105u);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  for (const size_t count : {10, 21, 31, 42, 52, 63, 73, 84, 94, 105}) {
    EXPECT_DOUBLE_EQ(times[count - 1], static_cast<double>(count) / 2);
  }
  EXPECT_EQ(EvenArrivalTimes(3, 1, 1, random).size(), 3u);
}

TEST(ArrivalTimesTest, ASeedRepeats) {
  std::mt19937_64 one(9), two(9);
  EXPECT_EQ(ArrivalTimes(50, 3, 0.5, one), ArrivalTimes(50, 3, 0.5, two));
}

}  // namespace
}  // namespace tandem::load
