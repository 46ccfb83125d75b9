#include "worker/control/epoch_fence.h"

#include <gtest/gtest.h>

namespace tandem::worker {
namespace {

const absl::Status kLost = absl::AbortedError("rank 1 was lost");
const absl::Status kNext = absl::AbortedError("epoch 3 begins");

TEST(EpochFenceTest, AnAbortEndsItsEpochAndThoseBefore) {
  EpochFence fence;
  EXPECT_TRUE(fence.Check(Epoch{0}).ok());
  fence.EndThrough(Epoch{2}, kLost);
  EXPECT_EQ(fence.Check(Epoch{1}), kLost);
  EXPECT_EQ(fence.Check(Epoch{2}), kLost);
  EXPECT_TRUE(fence.Check(Epoch{3}).ok());
}

TEST(EpochFenceTest, AnAbortOfAnEarlierEpochChangesNothing) {
  EpochFence fence;
  fence.EndBefore(Epoch{3}, kNext);
  fence.EndThrough(Epoch{1}, kLost);
  EXPECT_EQ(fence.Check(Epoch{2}), kNext);
  EXPECT_TRUE(fence.Check(Epoch{3}).ok());
}

TEST(EpochFenceTest, TheReasonOfAnAbortStaysWhenTheNextEpochBegins) {
  EpochFence fence;
  fence.EndThrough(Epoch{2}, kLost);
  fence.EndBefore(Epoch{3}, kNext);
  EXPECT_EQ(fence.Check(Epoch{2}), kLost);
}

TEST(EpochFenceTest, TheLargestEpochCanEnd) {
  EpochFence fence;
  const Epoch largest{std::numeric_limits<uint64_t>::max()};
  fence.EndThrough(largest, kLost);
  EXPECT_EQ(fence.Check(Epoch{5}), kLost);
  EXPECT_TRUE(fence.Check(largest).ok());  // it is indistinguishable from a later one
}

TEST(EpochFenceTest, TheEndOfTheWorkerEndsEveryEpochForTheFirstReason) {
  EpochFence fence;
  fence.EndThrough(Epoch{2}, kLost);
  fence.EndAll(absl::CancelledError("shutdown"));
  fence.EndAll(absl::UnavailableError("gone"));
  EXPECT_EQ(fence.Check(Epoch{2}), kLost);
  EXPECT_EQ(fence.Check(Epoch{3}), absl::CancelledError("shutdown"));
}

}  // namespace
}  // namespace tandem::worker
