#include "coordinator/api/grpc/running_calls.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace tandem::coordinator {
namespace {

TEST(RunningCallsTest, ACallerCancelsHisOwnCallsOnly) {
  RunningCalls calls;
  int mine = 0;
  int anothers = 0;
  const RunningCalls::Place first(calls, "me", "id", [&] { ++mine; });
  const RunningCalls::Place second(calls, "me", "id", [&] { ++mine; });
  const RunningCalls::Place other(calls, "another", "id", [&] { ++anothers; });
  calls.Cancel("me", "id");
  EXPECT_EQ(mine, 2);
  EXPECT_EQ(anothers, 0);
  calls.Cancel("", "id");
  calls.Cancel("me", "other id");
  EXPECT_EQ(mine, 2);
  EXPECT_EQ(anothers, 0);
}

TEST(RunningCallsTest, ACallThatHasEndedIsNotCancelled) {
  RunningCalls calls;
  int cancelled = 0;
  std::optional<RunningCalls::Place> place(std::in_place, calls, "me", "id", [&] { ++cancelled; });
  RunningCalls::Place moved = *std::move(place);
  place.reset();
  calls.Cancel("me", "id");
  EXPECT_EQ(cancelled, 1);
  moved = RunningCalls::Place();
  calls.Cancel("me", "id");
  EXPECT_EQ(cancelled, 1);
}

}  // namespace
}  // namespace tandem::coordinator
