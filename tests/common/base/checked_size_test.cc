#include "common/base/checked_size.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

TEST(CheckedSizeTest, SumsAndProductsThatFit) {
  EXPECT_EQ((CheckedSize(3) * 4 + 5).value(), 17u);
  EXPECT_EQ((CheckedSize(kMax) + 0).value(), kMax);
  EXPECT_EQ((CheckedSize(kMax) * 1).value(), kMax);
}

TEST(CheckedSizeTest, RemembersAnOverflowForever) {
  CheckedSize sum = CheckedSize(kMax) + 1;
  EXPECT_FALSE(sum.ok());
  EXPECT_FALSE(sum.value().has_value());
  sum *= 0;
  EXPECT_FALSE(sum.ok());
  EXPECT_FALSE((CheckedSize(2) + sum).ok());
  EXPECT_FALSE((CheckedSize(uint64_t{1} << 32) * (uint64_t{1} << 32)).ok());
}

TEST(CheckedSizeTest, FitsInIsInclusiveAndFalseAfterOverflow) {
  EXPECT_TRUE(CheckedSize(8).FitsIn(8));
  EXPECT_FALSE(CheckedSize(9).FitsIn(8));
  EXPECT_FALSE((CheckedSize(kMax) + 1).FitsIn(kMax));  // wraps to 0
}

}  // namespace
}  // namespace tandem
