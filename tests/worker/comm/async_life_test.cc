#include "worker/comm/async_life.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

namespace tandem::worker {
namespace {

// Done after some polls, or never; counts its calls.
class FakeHandle : public AsyncHandle {
 public:
  absl::StatusOr<bool> Done() override {
    EXPECT_EQ(aborts, 0) << "asked after Abort";
    ++polls;
    if (!error.ok()) return error;
    return polls > polls_until_done;
  }
  void Abort() override { ++aborts; }

  int polls_until_done = 0;
  absl::Status error;
  std::atomic<int> polls = 0;
  int aborts = 0;
};

constexpr int kNever = std::numeric_limits<int>::max();
Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Now() { return Deadline::After(Duration::zero()); }

TEST(AsyncLifeTest, AwaitPollsUntilTheCallHasEnded) {
  FakeHandle handle;
  handle.polls_until_done = 3;
  AsyncLife life(handle, "rank 0 of 2");
  EXPECT_TRUE(life.Await("join", Soon()).ok());
  EXPECT_EQ(handle.polls, 4);
  EXPECT_EQ(handle.aborts, 0);
  EXPECT_FALSE(life.broken());
}

TEST(AsyncLifeTest, TheDeadlineAbortsWithTheCall) {
  FakeHandle handle;
  handle.polls_until_done = kNever;
  AsyncLife life(handle, "rank 0 of 2");
  const absl::Status status = life.Await("join", Now());
  EXPECT_EQ(status, absl::DeadlineExceededError(
                        "communicator: rank 0 of 2: not all ranks arrived in time at join"));
  EXPECT_EQ(handle.aborts, 1);
  EXPECT_TRUE(life.broken());
  // Later calls neither use the handle nor change the reason.
  EXPECT_EQ(life.Await("all-reduce", Soon()), status);
  EXPECT_EQ(life.Check(), status);
  life.Cancel(absl::InternalError("later"));
  life.Abort(absl::InternalError("later"));
  EXPECT_EQ(life.Check(), status);
  EXPECT_EQ(handle.aborts, 1);
}

TEST(AsyncLifeTest, ADoneCallIsDoneAlsoAtTheDeadline) {
  FakeHandle handle;
  AsyncLife life(handle, "rank 0 of 2");
  EXPECT_TRUE(life.Await("join", Now()).ok());
}

TEST(AsyncLifeTest, InProgressIsNoErrorForTheWatch) {
  FakeHandle handle;
  handle.polls_until_done = kNever;
  AsyncLife life(handle, "rank 0 of 2");
  EXPECT_TRUE(life.Check().ok());
  EXPECT_FALSE(*life.Poll());
  EXPECT_EQ(handle.aborts, 0);
}

TEST(AsyncLifeTest, AnErrorOfTheLibraryEndsTheWait) {
  FakeHandle handle;
  AsyncLife life(handle, "rank 1 of 4");
  EXPECT_TRUE(life.Check().ok());
  handle.error = absl::UnavailableError("remote process exited");
  EXPECT_EQ(life.Check(),
            absl::UnavailableError("communicator: rank 1 of 4: remote process exited"));
  EXPECT_EQ(handle.aborts, 1);
}

TEST(AsyncLifeTest, CancelAbortsOnceWithAnErrorInAnyCase) {
  FakeHandle handle;
  AsyncLife life(handle, "rank 0 of 2");
  life.Cancel(absl::OkStatus());
  life.Cancel(absl::InternalError("again"));
  EXPECT_EQ(life.Check().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(handle.aborts, 1);
}

TEST(AsyncLifeTest, AnAbortFromAnotherThreadReachesThePoller) {
  FakeHandle handle;
  handle.polls_until_done = kNever;
  AsyncLife life(handle, "rank 0 of 2");
  std::thread other([&] {
    while (handle.polls < 2) std::this_thread::yield();
    life.Abort(absl::UnavailableError("rank 1 is gone"));
    life.Abort(absl::UnavailableError("later"));
  });
  EXPECT_EQ(life.Await("join", Soon()), absl::UnavailableError("rank 1 is gone"));
  other.join();
  EXPECT_EQ(handle.aborts, 1);
}

TEST(AsyncLifeTest, AnAbortBeforeTheFirstPollIsNotLost) {
  FakeHandle handle;
  AsyncLife life(handle, "rank 0 of 2");
  life.Abort(absl::UnavailableError("shutdown"));
  EXPECT_EQ(handle.aborts, 0);  // not on the caller's thread
  EXPECT_EQ(life.Check(), absl::UnavailableError("shutdown"));
  EXPECT_EQ(handle.polls, 0);
  EXPECT_EQ(handle.aborts, 1);
}

}  // namespace
}  // namespace tandem::worker
