// Workers are lost and others take over: no request fails, and each gets the same tokens.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/coordinator/engine/engine_loop_fixture.h"

namespace tandem::coordinator {
namespace {

class EngineRecoveryTest : public EngineLoopTest {
 protected:
  void StartRecovering() {
    recover_ = [this](const absl::Status& loss, const std::function<bool()>& cancelled) {
      losses_.push_back(std::string(loss.message()));
      return OnLoss(cancelled);
    };
    Start();
  }
  absl::StatusOr<ReadyWorkers> OnLoss(const std::function<bool()>& cancelled) {
    if (on_loss_) {
      if (absl::Status status = on_loss_(cancelled); !status.ok()) return status;
    }
    engine_.scripts = {};
    workers_.clear();
    return engine_.MakeWorkers(Epoch{++epoch_}, &workers_);
  }
  // What a request gets from workers that live.
  RecordingStream::Record Undisturbed(const std::string& id, uint32_t max_tokens) {
    SimulatedEngine engine = SimulatedEngine::Small();
    auto stream = std::make_shared<RecordingStream>();
    auto core = engine.Make();
    core->Add(MakeRequest(id, 9, max_tokens, stream), 1);
    while (!core->idle()) EXPECT_TRUE(core->Step().ok());
    return stream->record();
  }

  uint64_t epoch_ = 5;
  std::vector<std::string> losses_;  // the engine thread's until the loop has ended
  std::function<absl::Status(const std::function<bool()>& cancelled)> on_loss_;
};

TEST_F(EngineRecoveryTest, StreamsContinueWithTheSameTokens) {
  for (const SimulatedFault fault :
       {SimulatedFault::kDie, SimulatedFault::kError, SimulatedFault::kWrongEpoch,
        SimulatedFault::kRefuse, SimulatedFault::kBadToken, SimulatedFault::kNoRows}) {
    for (uint64_t step = 1; step <= 11; ++step) {
      engine_.scripts = {{.faults = {{step, fault}}, .delay_polls = 0, .fail_load = false}};
      losses_.clear();
      StartRecovering();
      std::vector<Stream> streams;
      for (const char* id : {"a", "b", "c"}) streams.push_back(Add(id));
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(streams[i]->WaitEnd());
        const auto record = streams[i]->record();
        EXPECT_EQ(record.code, absl::StatusCode::kOk) << record.message;
        EXPECT_EQ(record.num_ends, 1);
        EXPECT_EQ(record.tokens, Undisturbed(std::string(1, "abc"[i]), 10).tokens)
            << "loss " << static_cast<int>(fault) << " in step " << step;
      }
      loop_->Shutdown();
      EXPECT_LE(losses_.size(), 1u);
      EXPECT_EQ(loop_->Stats().restarts, static_cast<int64_t>(losses_.size()));
      ExpectAllFree();
      loop_.reset();
      workers_.clear();
    }
  }
}

TEST_F(EngineRecoveryTest, WhatThePrefixCacheHeldIsForgotten) {
  StartRecovering();
  ASSERT_TRUE(Add("a")->WaitEnd());
  Stream cached = Add("a");
  ASSERT_TRUE(cached->WaitEnd());
  EXPECT_GT(cached->record().usage.cached_tokens, 0u);
  workers_[1]->Kill();
  Stream again = Add("a");
  ASSERT_TRUE(again->WaitEnd());
  EXPECT_EQ(again->record().tokens, cached->record().tokens);
  loop_->Shutdown();
  EXPECT_EQ(losses_, std::vector<std::string>{"rank 1 exited with signal 9"});
}

TEST_F(EngineRecoveryTest, UsageStaysThatOfTheFirstStart) {
  StartRecovering();
  ASSERT_TRUE(Add("a")->WaitEnd());
  Stream held = AddHeld("a");
  workers_[0]->Kill();
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().usage.cached_tokens, 8u);
  EXPECT_EQ(held->record().usage.completion_tokens, 10u);
}

TEST_F(EngineRecoveryTest, CancelsAndNewRequestsAreServedMeanwhile) {
  engine_.config.scheduler.max_num_seqs = 2;
  std::promise<void> lost;
  std::atomic<bool> added{false};
  on_loss_ = [&](const std::function<bool()>& cancelled) {
    lost.set_value();
    while (!added || loop_->Stats().waiting != 2) {  // one cancelled, one new
      if (cancelled()) return absl::CancelledError("stopped");
      std::this_thread::yield();
    }
    return absl::OkStatus();
  };
  StartRecovering();
  Stream a = AddHeld("a");
  Stream b = Add("b");
  workers_[0]->Kill();
  gate_.Open();
  lost.get_future().wait();
  Cancel("a");
  ASSERT_TRUE(a->WaitEnd());
  EXPECT_EQ(a->record().reason, FinishReason::kCancelled);
  Stream c = Add("c");
  added = true;
  for (const Stream& stream : {b, c}) {
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().reason, FinishReason::kLength);
  }
  EXPECT_EQ(c->record().tokens, Undisturbed("c", 10).tokens);
}

TEST_F(EngineRecoveryTest, ShutdownEndsItAndEveryRequest) {
  std::promise<void> lost;
  on_loss_ = [&](const std::function<bool()>& cancelled) {
    lost.set_value();
    while (!cancelled()) std::this_thread::yield();
    return absl::CancelledError("stopped while workers load");
  };
  StartRecovering();
  Stream held = AddHeld("a");
  workers_[0]->Kill();
  gate_.Open();
  lost.get_future().wait();
  loop_->Shutdown();
  EXPECT_EQ(held->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(held->record().code, absl::StatusCode::kOk);
  EXPECT_EQ(loss_.count(), 0);
}

TEST_F(EngineRecoveryTest, ALossThatIsFinalNamesItsCause) {
  on_loss_ = [](const std::function<bool()>&) {
    return absl::UnavailableError("rank 0 exited with signal 9; not restarted again");
  };
  StartRecovering();
  Stream held = AddHeld("a");
  workers_[0]->Kill();
  gate_.Open();
  EXPECT_EQ(loss_.Await(), "rank 0 exited with signal 9; not restarted again");
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(AddStatus("late").message(), "rank 0 exited with signal 9; not restarted again");
  EXPECT_EQ(loop_->state(), EngineLoop::State::kLost);
  ExpectAllFree();
}

TEST_F(EngineRecoveryTest, ALossWhileIdleIsRepaired) {
  engine_.clock = &clock_;
  std::promise<void> lost;
  on_loss_ = [&](const std::function<bool()>&) {
    lost.set_value();
    return absl::OkStatus();
  };
  StartRecovering();
  workers_[1]->Kill();
  lost.get_future().wait();
  Stream stream = Add("a");
  ASSERT_TRUE(stream->WaitEnd());
  EXPECT_EQ(stream->record().tokens, Undisturbed("a", 10).tokens);
  EXPECT_EQ(loop_->Stats().epoch, 6);
}

}  // namespace
}  // namespace tandem::coordinator
