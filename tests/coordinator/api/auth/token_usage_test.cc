#include "coordinator/api/auth/token_usage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace tandem::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TokenUsageTest : public ::testing::Test {
 protected:
  // The hold, or none and when to come again.
  std::optional<TokenUsage::Hold> Take(const TokenLimits& limits, const char* name = "a",
                                       uint32_t count = 1) {
    retry_after_ = Duration::zero();
    auto hold = usage_.Take({.name = name, .limits = limits}, retry_after_, count);
    EXPECT_EQ(hold.ok(), retry_after_ == Duration::zero());
    EXPECT_TRUE(hold.ok() || absl::IsResourceExhausted(hold.status())) << hold.status();
    if (!hold.ok()) return std::nullopt;
    return *std::move(hold);
  }

  SimulatedClock clock_;
  TokenUsage usage_{clock_};
  Duration retry_after_{};
};

TEST_F(TokenUsageTest, WithoutLimitsThereIsNone) {
  std::vector<std::optional<TokenUsage::Hold>> holds;
  for (int i = 0; i < 1000; ++i) {
    holds.push_back(Take({.burst = 1}));
    ASSERT_TRUE(holds.back().has_value());
  }
}

TEST_F(TokenUsageTest, ABurstThenTheRate) {
  const TokenLimits limits{.rate = 2, .burst = 3};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Take(limits).has_value());
  EXPECT_FALSE(Take(limits).has_value());
  EXPECT_EQ(retry_after_, milliseconds(500));
  clock_.Advance(milliseconds(400));
  EXPECT_FALSE(Take(limits).has_value());
  EXPECT_NEAR(std::chrono::duration<double>(retry_after_).count(), 0.1, 1e-6);
  clock_.Advance(retry_after_);
  EXPECT_TRUE(Take(limits).has_value());
  EXPECT_FALSE(Take(limits).has_value());
  // What is not used is kept up to the burst.
  clock_.Advance(seconds(3600));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Take(limits).has_value());
  EXPECT_FALSE(Take(limits).has_value());
}

TEST_F(TokenUsageTest, RequestsAtATimeUntilTheyEnd) {
  const TokenLimits limits{.burst = 1, .concurrent = 2};
  std::optional<TokenUsage::Hold> first = Take(limits);
  std::optional<TokenUsage::Hold> second = Take(limits);
  EXPECT_FALSE(Take(limits).has_value());
  EXPECT_EQ(retry_after_, seconds(1));
  TokenUsage::Hold moved = *std::move(first);
  first.reset();
  EXPECT_FALSE(Take(limits).has_value()) << "a moved hold still holds";
  moved = TokenUsage::Hold();
  first = Take(limits);
  EXPECT_TRUE(first.has_value());
}

TEST_F(TokenUsageTest, NamesDoNotShare) {
  const TokenLimits limits{.burst = 1, .concurrent = 1};
  const auto a = Take(limits, "a");
  const auto b = Take(limits, "b");
  EXPECT_TRUE(a.has_value() && b.has_value());
  EXPECT_FALSE(Take(limits, "a").has_value());
}

TEST_F(TokenUsageTest, NewLimitsCountWhatRuns) {
  const auto first = Take({.burst = 1, .concurrent = 1});
  const auto second = Take({.burst = 1, .concurrent = 2});
  EXPECT_TRUE(second.has_value());
  EXPECT_FALSE(Take({.burst = 1, .concurrent = 2}).has_value());
  // The same limits, as after a file that is read again, are no new ones.
  const TokenLimits rate{.rate = 1, .burst = 1};
  EXPECT_TRUE(Take(rate, "b").has_value());
  EXPECT_FALSE(Take(rate, "b").has_value());
}

TEST_F(TokenUsageTest, ContinuationsCountEach) {
  const TokenLimits limits{.rate = 1, .burst = 8, .concurrent = 4};
  auto three = Take(limits, "a", 3);
  ASSERT_TRUE(three.has_value());
  EXPECT_FALSE(Take(limits, "a", 2).has_value()) << "five at a time";
  auto one = Take(limits);
  EXPECT_TRUE(one.has_value());
  three.reset();
  EXPECT_TRUE(Take(limits, "a", 3).has_value());
  EXPECT_FALSE(Take(limits, "a", 3).has_value()) << "the eleventh of a burst of eight";
  EXPECT_EQ(retry_after_, seconds(2));
}

TEST_F(TokenUsageTest, MoreAtATimeThanTheTokenEverHas) {
  const TokenEntry token{.name = "a", .limits = {.burst = 1, .concurrent = 4}};
  const auto refused = usage_.Take(token, retry_after_, 5);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_EQ(refused.status().message(), "5 requests in one call, token 'a' may have at most 4");
}

}  // namespace
}  // namespace tandem::coordinator
