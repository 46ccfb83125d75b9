#include "client/trace/rank_clocks.h"

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

constexpr RankClocks::Rank kRank{.rank = 1, .epoch = 3};

TEST(RankClocksTest, OneHostHasOneClock) {
  RankClocks clocks;
  // Sent, answered; received and done between them.
  clocks.Add(kRank, 1'000'000, 9'000'000, 1'200'000, 8'500'000);
  clocks.Add(kRank, 11'000'000, 19'000'000, 11'010'000, 18'990'000);
  EXPECT_EQ(clocks.Of(kRank).ns, 0);
  EXPECT_EQ(clocks.Of(kRank).error_ns, 0);
}

TEST(RankClocksTest, WholeMicrosecondsMakeNoOtherClock) {
  RankClocks clocks;
  clocks.Add(kRank, 1'000'900, 9'000'000, 1'000'000, 8'000'000);
  EXPECT_EQ(clocks.Of(kRank).error_ns, 0);
}

TEST(RankClocksTest, AnotherHostsIsEstimatedByTheBestSteps) {
  // The rank's clock is 5 s behind. Each step takes 1 ms; ways there and back take as given.
  RankClocks clocks;
  const auto step = [&](int64_t at_ns, int64_t there_ns, int64_t back_ns) {
    const int64_t received_ns = at_ns + there_ns - 5'000'000'000;
    clocks.Add(kRank, at_ns, at_ns + there_ns + 1'000'000 + back_ns, received_ns,
               received_ns + 1'000'000);
  };
  step(0, 300'000, 900'000);
  step(2'000'000, 50'000, 700'000);
  step(4'000'000, 800'000, 30'000);
  const RankClocks::Offset offset = clocks.Of(kRank);
  EXPECT_EQ(offset.error_ns, (50'000 + 30'000) / 2);
  EXPECT_NEAR(static_cast<double>(offset.ns), 5e9, static_cast<double>(offset.error_ns));
}

TEST(RankClocksTest, AnEpochMayBeOnAnotherHost) {
  RankClocks clocks;
  clocks.Add(kRank, 0, 3'000'000, 1'000'000, 2'000'000);
  clocks.Add({.rank = 1, .epoch = 4}, 0, 3'000'000, 901'000'000, 902'000'000);
  EXPECT_EQ(clocks.Of(kRank).ns, 0);
  EXPECT_EQ(clocks.Of({.rank = 1, .epoch = 4}).ns, -900'000'000);
}

TEST(RankClocksTest, BoundsThatContradictEachOtherGiveAnError) {
  RankClocks clocks;  // one that drifts
  clocks.Add(kRank, 10'000'000, 10'000'000, 0, 0);
  clocks.Add(kRank, 20'000'000, 20'000'000, 12'000'000, 12'000'000);
  EXPECT_EQ(clocks.Of(kRank).ns, 9'000'000);
  EXPECT_EQ(clocks.Of(kRank).error_ns, 1'000'000);
}

}  // namespace
}  // namespace tandem::client
