#include "kernels/cuda/gemm_plans.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem::kernels::cuda {
namespace {

TEST(BucketOfTest, RoundsUpToPowersOfTwoAndThreeHalvesOfThem) {
  EXPECT_EQ(BucketOf(1), 1u);
  EXPECT_EQ(BucketOf(2), 2u);
  EXPECT_EQ(BucketOf(3), 3u);
  EXPECT_EQ(BucketOf(5), 6u);
  EXPECT_EQ(BucketOf(9), 12u);
  EXPECT_EQ(BucketOf(257), 384u);
  EXPECT_EQ(BucketOf(385), 512u);
  EXPECT_EQ(BucketOf(1u << 31), 1u << 31);
}

TEST(BucketOfTest, AStepsRowsHaveFewBucketsThatAreNotMuchLarger) {
  uint32_t buckets = 0;
  for (uint32_t rows = 1; rows <= 8192; ++rows) {
    const uint32_t bucket = BucketOf(rows);
    ASSERT_GE(bucket, rows);
    ASSERT_LT(bucket, 1.5 * rows);
    ASSERT_EQ(BucketOf(bucket), bucket);
    buckets += bucket == rows ? 1 : 0;
  }
  EXPECT_EQ(buckets, 26u);
}

// Plans that know for how many rows they were made; some buckets have none, some don't fit.
class PlansTest : public testing::Test {
 protected:
  // The number of rows that the plan for a product was made for; 0: there is none.
  uint32_t MadeFor(const std::string& shape, uint32_t rows) {
    const auto plan = plans_.Find(
        shape, rows,
        [&](uint32_t m) -> absl::StatusOr<uint32_t> {
          made_.push_back(m);
          if (m == no_plan_for_) return absl::UnimplementedError("none");
          return m;
        },
        [&](uint32_t made_for, uint32_t m) { return made_for != unfit_ && m < made_for; });
    return plan.ok() ? **plan : 0;
  }

  BucketedPlans<std::string, uint32_t> plans_;
  std::vector<uint32_t> made_;
  uint32_t no_plan_for_ = 0;
  uint32_t unfit_ = 0;
};

TEST_F(PlansTest, NumbersOfRowsOfABucketShareOnePlan) {
  for (const uint32_t rows : {300u, 384u, 257u, 300u}) EXPECT_EQ(MadeFor("a", rows), 384u);
  EXPECT_EQ(made_, std::vector<uint32_t>{384});
  EXPECT_EQ(MadeFor("b", 300), 384u);
  EXPECT_EQ(MadeFor("a", 385), 512u);
  EXPECT_EQ(plans_.size(), 3u);
}

TEST_F(PlansTest, RowsThatABucketsPlanDoesNotFitHaveTheirOwn) {
  unfit_ = 384;
  EXPECT_EQ(MadeFor("a", 300), 300u);
  EXPECT_EQ(MadeFor("a", 300), 300u);
  EXPECT_EQ(MadeFor("a", 384), 384u);
  EXPECT_EQ(made_, (std::vector<uint32_t>{384, 300}));
}

TEST_F(PlansTest, RowsOfABucketWithoutAPlanHaveTheirOwn) {
  no_plan_for_ = 384;
  EXPECT_EQ(MadeFor("a", 300), 300u);
  EXPECT_EQ(MadeFor("a", 384), 0u);
  EXPECT_EQ(plans_.size(), 1u);
}

TEST_F(PlansTest, DropsThemAllRatherThanKeepingMoreAndMore) {
  for (size_t i = 0; i < decltype(plans_)::kMost; ++i) MadeFor(std::to_string(i), 16);
  EXPECT_EQ(plans_.size(), decltype(plans_)::kMost);
  EXPECT_EQ(MadeFor("one more", 16), 16u);
  EXPECT_EQ(plans_.size(), 1u);
}

}  // namespace
}  // namespace tandem::kernels::cuda
