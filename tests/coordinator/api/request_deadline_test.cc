#include "coordinator/api/request_deadline.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tandem::coordinator {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kNow{seconds(1000)};
constexpr WallTime kWallNow{hours(24 * 365 * 50)};

TimePoint Deadline(WallTime of_call, Duration timeout) {
  return RequestDeadline(of_call, kWallNow, timeout, kNow);
}

TEST(RequestDeadlineTest, NoneIsNever) {
  EXPECT_EQ(Deadline(WallTime::max(), {}), TimePoint::max());
  EXPECT_EQ(Deadline(kWallNow + hours(24 * 365), {}), TimePoint::max());
}

TEST(RequestDeadlineTest, TheCallsDistanceIsKept) {
  EXPECT_EQ(Deadline(kWallNow + seconds(7), {}), kNow + seconds(7));
}

TEST(RequestDeadlineTest, TheServersTimeoutCountsFromTheArrival) {
  EXPECT_EQ(Deadline(WallTime::max(), seconds(5)), kNow + seconds(5));
}

TEST(RequestDeadlineTest, TheEarlierOfBoth) {
  EXPECT_EQ(Deadline(kWallNow + seconds(7), seconds(5)), kNow + seconds(5));
  EXPECT_EQ(Deadline(kWallNow + seconds(3), seconds(5)), kNow + seconds(3));
}

TEST(RequestDeadlineTest, AClientMayGiveUpALittleEarlier) {
  EXPECT_EQ(GivenUpBefore(seconds(100)), milliseconds(1200));
  EXPECT_EQ(GivenUpBefore(seconds(1)), milliseconds(210));
  EXPECT_EQ(GivenUpBefore(milliseconds(100)), milliseconds(50)) << "a cancel at once is none";
  EXPECT_EQ(GivenUpBefore({}), Duration::zero());
}

TEST(RequestDeadlineTest, WhatIsOverIsOverNow) {
  EXPECT_EQ(Deadline(kWallNow - seconds(1), seconds(5)), kNow);
  EXPECT_EQ(Deadline(WallTime::min(), {}), kNow);
}

}  // namespace
}  // namespace tandem::coordinator
