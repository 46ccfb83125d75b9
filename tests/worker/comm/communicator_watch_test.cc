#include "worker/comm/communicator_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

namespace tandem::worker {
namespace {

// Done after some polls, or never; counts its calls.
class FakeHandle : public AsyncConnection {
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

TEST(CommunicatorWatchTest, AwaitPollsUntilTheCallHasEnded) {
  FakeHandle handle;
  handle.polls_until_done = 3;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  EXPECT_TRUE(watch.Await("join", Soon()).ok());
  EXPECT_EQ(handle.polls, 4);
  EXPECT_EQ(handle.aborts, 0);
  EXPECT_FALSE(watch.broken());
}

TEST(CommunicatorWatchTest, TheDeadlineAbortsWithTheCall) {
  FakeHandle handle;
  handle.polls_until_done = kNever;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  const absl::Status status = watch.Await("join", Now());
  EXPECT_EQ(status, absl::DeadlineExceededError(
                        "communicator: rank 0 of 2: not all ranks arrived in time at join"));
  EXPECT_EQ(handle.aborts, 1);
  EXPECT_TRUE(watch.broken());
  // Later calls neither use the handle nor change the reason.
  EXPECT_EQ(watch.Await("all-reduce", Soon()), status);
  EXPECT_EQ(watch.Check(), status);
  watch.Cancel(absl::InternalError("later"));
  watch.Abort(absl::InternalError("later"));
  EXPECT_EQ(watch.Check(), status);
  EXPECT_EQ(handle.aborts, 1);
}

TEST(CommunicatorWatchTest, ADoneCallIsDoneAlsoAtTheDeadline) {
  FakeHandle handle;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  EXPECT_TRUE(watch.Await("join", Now()).ok());
}

TEST(CommunicatorWatchTest, InProgressIsNoErrorForTheWatch) {
  FakeHandle handle;
  handle.polls_until_done = kNever;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  EXPECT_TRUE(watch.Check().ok());
  EXPECT_FALSE(*watch.Poll());
  EXPECT_EQ(handle.aborts, 0);
}

TEST(CommunicatorWatchTest, AnErrorOfTheLibraryEndsTheWait) {
  FakeHandle handle;
  CommunicatorWatch watch(handle, "rank 1 of 4");
  EXPECT_TRUE(watch.Check().ok());
  handle.error = absl::UnavailableError("remote process exited");
  EXPECT_EQ(watch.Check(),
            absl::UnavailableError("communicator: rank 1 of 4: remote process exited"));
  EXPECT_EQ(handle.aborts, 1);
}

TEST(CommunicatorWatchTest, CancelAbortsOnceWithAnErrorInAnyCase) {
  FakeHandle handle;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  watch.Cancel(absl::OkStatus());
  watch.Cancel(absl::InternalError("again"));
  EXPECT_EQ(watch.Check().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(handle.aborts, 1);
}

TEST(CommunicatorWatchTest, AnAbortFromAnotherThreadReachesThePoller) {
  FakeHandle handle;
  handle.polls_until_done = kNever;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  std::thread other([&] {
    while (handle.polls < 2) std::this_thread::yield();
    watch.Abort(absl::UnavailableError("rank 1 is gone"));
    watch.Abort(absl::UnavailableError("later"));
  });
  EXPECT_EQ(watch.Await("join", Soon()), absl::UnavailableError("rank 1 is gone"));
  other.join();
  EXPECT_EQ(handle.aborts, 1);
}

TEST(CommunicatorWatchTest, AnAbortBeforeTheFirstPollIsNotLost) {
  FakeHandle handle;
  CommunicatorWatch watch(handle, "rank 0 of 2");
  watch.Abort(absl::UnavailableError("shutdown"));
  EXPECT_EQ(handle.aborts, 0);  // not on the caller's thread
  EXPECT_EQ(watch.Check(), absl::UnavailableError("shutdown"));
  EXPECT_EQ(handle.polls, 0);
  EXPECT_EQ(handle.aborts, 1);
}

}  // namespace
}  // namespace tandem::worker
