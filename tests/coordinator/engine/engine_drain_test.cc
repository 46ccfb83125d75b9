// Draining: no request is admitted any more, those in flight are finished.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "tests/coordinator/engine/engine_loop_fixture.h"

namespace tandem::coordinator {
namespace {

class EngineDrainTest : public EngineLoopTest {
 protected:
  void StopAdmission() {
    loop_->StopAdmission([this] {
      ++drained_;
      drained_once_.set_value();
    });
  }
  // Whether the callback comes within a minute.
  bool AwaitDrained() {
    return drained_once_.get_future().wait_for(std::chrono::minutes(1)) ==
           std::future_status::ready;
  }

  std::atomic<int> drained_ = 0;
  std::promise<void> drained_once_;  // set twice it throws
};

TEST_F(EngineDrainTest, FinishesWhatRunsAndWhatWaits) {
  engine_.config.scheduler.max_num_seqs = 1;
  Start();
  const Stream running = AddHeld("running");
  const Stream waiting = Add("waiting");
  StopAdmission();
  EXPECT_EQ(loop_->state(), EngineLoop::State::kDraining);
  EXPECT_EQ(AddStatus("late").message(), "the server is shutting down");
  EXPECT_EQ(AddCode("late"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(drained_, 0);
  gate_.Open();
  ASSERT_TRUE(AwaitDrained());
  for (const Stream& stream : {running, waiting}) {
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().reason, FinishReason::kLength);
    EXPECT_EQ(stream->record().tokens.size(), 10u);
  }
  ExpectAllFree();
  loop_->Shutdown();
  EXPECT_EQ(drained_, 1);
}

TEST_F(EngineDrainTest, AnIdleEngineIsDrainedAtOnce) {
  Start();
  StopAdmission();
  EXPECT_EQ(drained_, 1);
  loop_->StopAdmission([] { ADD_FAILURE() << "a second drain"; });
}

TEST_F(EngineDrainTest, CancelsAreServed) {
  Start();
  const Stream held = AddHeld("held");
  StopAdmission();
  Cancel("held");
  gate_.Open();
  ASSERT_TRUE(AwaitDrained());
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().reason, FinishReason::kCancelled);
}

TEST_F(EngineDrainTest, ShutdownCutsItShort) {
  Start();
  const Stream held = AddHeld("held");
  StopAdmission();
  auto shutdown = std::async(std::launch::async, [&] { loop_->Shutdown(); });
  while (loop_->state() == EngineLoop::State::kDraining) std::this_thread::yield();
  gate_.Open();
  shutdown.get();
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().reason, FinishReason::kCancelled);
}

TEST_F(EngineDrainTest, ALostWorkerEndsItWithItsName) {
  Start();
  const Stream held = AddHeld("held");
  StopAdmission();
  workers_[1]->Kill();
  gate_.Open();
  EXPECT_EQ(loss_.Await(), "rank 1 exited with signal 9");
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(drained_, 0);
}

}  // namespace
}  // namespace tandem::coordinator
