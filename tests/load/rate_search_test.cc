#include "tests/load/rate_search.h"

#include <gtest/gtest.h>

namespace tandem::load {
namespace {

// A server that keeps up with at most `capacity` requests per second.
RateSearch Search(double first, double capacity, int& runs) {
  RateSearch search(first);
  runs = 0;
  while (const auto rate = search.Next()) {
    search.Add(*rate <= capacity);
    ++runs;
  }
  return search;
}

TEST(RateSearchTest, FindsTheCapacityFromBelowAndFromAbove) {
  for (const double first : {1.0, 3.0, 60.0, 400.0}) {
    int runs = 0;
    const RateSearch search = Search(first, 50, runs);
    ASSERT_TRUE(search.kept_up() && search.saturated()) << first;
    EXPECT_LE(*search.kept_up(), 50) << first;
    EXPECT_GT(*search.saturated(), 50) << first;
    EXPECT_LE(*search.saturated() / *search.kept_up(), RateSearch::kPrecision) << first;
    EXPECT_LT(runs, RateSearch::kMaxRuns) << first;
  }
}

TEST(RateSearchTest, EndsWithoutABound) {
  int runs = 0;
  EXPECT_FALSE(Search(1, 1e300, runs).saturated().has_value());
  EXPECT_EQ(runs, RateSearch::kMaxRuns);
  EXPECT_FALSE(Search(1, 0, runs).kept_up().has_value());
  EXPECT_EQ(runs, RateSearch::kMaxRuns);
}

}  // namespace
}  // namespace tandem::load
