#include "coordinator/observe/histogram.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tandem::coordinator {
namespace {

constexpr double kBounds[] = {0.001, 0.01, 0.1};

TEST(HistogramTest, CountsByUpperBound) {
  Histogram histogram(kBounds);
  histogram.Record(std::chrono::milliseconds(1));  // a bound belongs to its range
  histogram.Record(std::chrono::microseconds(1001));
  histogram.Record(std::chrono::milliseconds(50), 3);
  histogram.Record(std::chrono::seconds(2));
  const HistogramView view = histogram.View();
  EXPECT_EQ(view.counts, (std::vector<uint64_t>{1, 1, 3, 1}));
  EXPECT_EQ(view.total(), 6u);
  EXPECT_DOUBLE_EQ(view.sum_s, 0.001 + 0.001001 + 3 * 0.05 + 2);
}

TEST(HistogramTest, LosesNothingToThreads) {
  Histogram histogram(kBounds);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) histogram.Record(std::chrono::milliseconds(5));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.View().counts, (std::vector<uint64_t>{0, 4000, 0, 0}));
  EXPECT_DOUBLE_EQ(histogram.View().sum_s, 20);
}

}  // namespace
}  // namespace tandem::coordinator
