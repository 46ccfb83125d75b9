#include "tests/load/saturation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace tandem::load {
namespace {

// Answered from `first_s` on, a token each `pace_s`.
Sample Answered(double intended_s, double first_s, uint32_t tokens, double pace_s) {
  Sample sample;
  sample.intended_s = intended_s;
  sample.output_tokens = tokens;
  for (uint32_t i = 0; i < tokens; ++i) sample.arrivals.push_back({first_s + i * pace_s, 1});
  sample.end_s = sample.arrivals.back().at_s;
  sample.outcome = Outcome::kCompleted;
  return sample;
}

// One request a second for a server that computes one at a time, in `service_s`.
RunRecord OneServer(size_t count, double service_s) {
  RunRecord record;
  double free_s = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto at_s = static_cast<double>(i);
    free_s = std::max(free_s, at_s) + service_s;
    record.samples.push_back(Answered(at_s, free_s, 1, 0));
  }
  return record;
}

TEST(SaturationTest, GrowthIsHowMuchTheRateIsAboveTheCapacity) {
  const Saturation saturation = JudgeSaturation(OneServer(100, 1.25));
  EXPECT_NEAR(saturation.growth, 0.25, 1e-9);
  EXPECT_NEAR(saturation.error, 0, 1e-9);
  EXPECT_TRUE(saturation.saturated());
}

TEST(SaturationTest, AServerThatKeepsUpHasNone) {
  const Saturation saturation = JudgeSaturation(OneServer(100, 0.9));
  EXPECT_NEAR(saturation.growth, 0, 1e-9);
  EXPECT_FALSE(saturation.saturated());
  EXPECT_TRUE(saturation.clear());
}

TEST(SaturationTest, LengthsOfAnswersAreNoGrowth) {
  RunRecord record;
  // Longer and longer answers, each token of which takes as long.
  for (uint32_t i = 0; i < 100; ++i) record.samples.push_back(Answered(i, i + 0.1, 1 + i, 0.1));
  const Saturation saturation = JudgeSaturation(record);
  EXPECT_NEAR(saturation.growth, 0, 1e-9);
  EXPECT_TRUE(saturation.clear());
}

TEST(SaturationTest, SlowerTokensAreGrowth) {
  RunRecord record;
  for (uint32_t i = 0; i < 100; ++i) {
    record.samples.push_back(Answered(i, i + 0.1, 11, 0.1 + 0.02 * i));
  }
  EXPECT_NEAR(JudgeSaturation(record).growth, 0.2, 1e-9);
}

TEST(SaturationTest, ARunIsLongBesideItsLatencies) {
  RunRecord record;
  for (int i = 0; i < 100; ++i) record.samples.push_back(Answered(i, i + 40, 2, 10));
  const Saturation saturation = JudgeSaturation(record);
  EXPECT_FALSE(saturation.steady());
  EXPECT_FALSE(saturation.clear());
  EXPECT_GT(saturation.wanted_s(), Saturation::kLatencies * 50);
}

TEST(SaturationTest, PlainGrowthNeedsNoLongerRun) {
  const Saturation saturation = JudgeSaturation(OneServer(40, 10));
  EXPECT_FALSE(saturation.steady());
  EXPECT_TRUE(saturation.clear());
  EXPECT_TRUE(saturation.saturated());
}

TEST(SaturationTest, CancelledRequestsCountAndSlowReadersDoNot) {
  RunRecord record = OneServer(100, 1.25);
  for (size_t i = 0; i < 100; i += 2) record.samples[i].outcome = Outcome::kCancelled;
  EXPECT_NEAR(JudgeSaturation(record).growth, 0.25, 0.01);
  EXPECT_EQ(JudgeSaturation(record).failed_share, 0);
  record = OneServer(100, 0.9);
  for (size_t i = 50; i < 100; i += 2) {
    record.samples[i].slow_reader = true;
    record.samples[i].arrivals.front().at_s += 100;
  }
  EXPECT_NEAR(JudgeSaturation(record).growth, 0, 1e-9);
}

TEST(SaturationTest, AServerThatRefusesDoesNotKeepUp) {
  RunRecord record = OneServer(100, 0.5);
  for (size_t i = 0; i < 100; i += 10) record.samples[i].outcome = Outcome::kFailed;
  const Saturation saturation = JudgeSaturation(record);
  EXPECT_DOUBLE_EQ(saturation.failed_share, 0.1);
  EXPECT_TRUE(saturation.saturated());
  EXPECT_TRUE(saturation.clear());
}

TEST(SaturationTest, OfFewRequestsNothingIsClear) {
  EXPECT_FALSE(JudgeSaturation({}).saturated());
  EXPECT_FALSE(JudgeSaturation(OneServer(20, 2)).clear());
}

}  // namespace
}  // namespace tandem::load
