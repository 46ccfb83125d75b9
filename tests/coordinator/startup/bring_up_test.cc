#include "coordinator/startup/bring_up.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::coordinator {
namespace {

TEST(LocalRanksTest, RanksOfAHostTakeDevicesInOrder) {
  EXPECT_EQ(LocalRanks({"a", "a", "a"}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(LocalRanks({"a", "b", "a", "b", "c"}), (std::vector<int>{0, 0, 1, 1, 0}));
}

TEST(RanksOnHostsTest, EveryRankKnowsHowManyShareItsHost) {
  EXPECT_EQ(RanksOnHosts({"a", "a", "a"}), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(RanksOnHosts({"a", "b", "a", "b", "c"}), (std::vector<int>{2, 2, 2, 2, 1}));
}

}  // namespace
}  // namespace tandem::coordinator
