#include "coordinator/engine/engine_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/coordinator/engine/engine_loop_fixture.h"

namespace tandem::coordinator {
namespace {

TEST_F(EngineLoopTest, ServesManyThreadsAtOnce) {
  engine_.config.max_queued_requests = 64;
  engine_.config.kv_cache.groups[0].num_blocks = 20;
  Start();
  constexpr int kThreads = 4, kRequests = 10;
  std::vector<std::vector<Stream>> streams(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      RequestHandle before = 0;
      for (int i = 0; i < kRequests; ++i) {
        streams[t].push_back(std::make_shared<RecordingStream>());
        // The prompt depends only on the length, so that threads share prefixes.
        Request request = MakeRequest("prompt", 5 + i, 10 + t, streams[t].back());
        request.id = std::to_string(t) + "." + std::to_string(i);
        const auto handle = loop_->Add(std::move(request));
        EXPECT_TRUE(handle.ok()) << handle.status();
        if (i % 3 == 2) loop_->Cancel(before);
        before = handle.value_or(0);
        loop_->Stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& of_thread : streams) {
    for (Stream& stream : of_thread) ASSERT_TRUE(stream->WaitEnd());
  }
  // Equal prompts give equal tokens, as far as each went.
  for (int t = 1; t < kThreads; ++t) {
    for (int i = 0; i < kRequests; ++i) {
      const auto a = streams[0][i]->record().tokens;
      const auto b = streams[t][i]->record().tokens;
      const size_t size = std::min(a.size(), b.size());
      EXPECT_TRUE(std::equal(a.begin(), a.begin() + size, b.begin()));
    }
  }
  ExpectAllFree();
  loop_->Shutdown();
  EXPECT_EQ(loss_.count(), 0);
}

TEST_F(EngineLoopTest, AnEngineThatIsStuckIsLate) {
  engine_.clock = &clock_;
  Start();
  Stream held = AddHeld("held");  // meanwhile the engine's thread does not read the clock
  EXPECT_FALSE(loop_->Late());
  clock_.Advance(engine_.config.step_timeout);
  EXPECT_FALSE(loop_->Late()) << "the step may be at its deadline, and be given up";
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(loop_->Late());
  gate_.Open();
  EXPECT_TRUE(held->WaitEnd());
}

TEST_F(EngineLoopTest, AnIdIsUniqueWhileInFlight) {
  Start();
  Stream held = AddHeld("a");
  const absl::Status twice = AddStatus("a");
  EXPECT_EQ(twice.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(twice.message(), "request id \"a\" is already in flight");
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().tokens.size(), 10u);
  // Free again as soon as the client heard of the end.
  Stream again = Add("a");
  ASSERT_TRUE(again->WaitEnd());
  EXPECT_EQ(again->record().tokens, held->record().tokens);
}

TEST_F(EngineLoopTest, AStreamMayAddAndCancel) {
  Start();
  auto second = std::make_shared<RecordingStream>();
  bool added = false;
  std::promise<RequestHandle> handle;  // the stream may be called before Add has returned
  auto first = std::make_shared<RecordingStream>(SIZE_MAX, [&] {
    if (added) return;
    added = true;
    EXPECT_TRUE(loop_->Add(MakeRequest("b", 9, 10, second)).ok());
    loop_->Cancel(handle.get_future().get());
    gate_.Open();
  });
  gate_.Close(1);  // holds the engine in the second step, so that "a" is not over by then
  const auto added_first = loop_->Add(MakeRequest("a", 9, 50, first));
  ASSERT_TRUE(added_first.ok()) << added_first.status();
  handle.set_value(*added_first);
  ASSERT_TRUE(first->WaitEnd());
  EXPECT_EQ(first->record().reason, FinishReason::kCancelled);
  ASSERT_TRUE(second->WaitEnd());
  EXPECT_EQ(second->record().reason, FinishReason::kLength);
}

TEST_F(EngineLoopTest, CancelFreesBlocksAndIsHeardOnce) {
  Start();
  Stream held = AddHeld("a");
  Stream waiting = Add("b");
  Cancel("a");
  Cancel("a");
  Cancel("b");
  loop_->Cancel(0);
  loop_->Cancel(1000);
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
  ASSERT_TRUE(waiting->WaitEnd());
  EXPECT_EQ(held->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(held->record().tokens.size(), 1u);
  EXPECT_EQ(waiting->record().reason, FinishReason::kCancelled);
  EXPECT_TRUE(waiting->record().tokens.empty());
  ExpectAllFree();
}

TEST_F(EngineLoopTest, ManyCancelsMidStreamLeaveNothingBehind) {
  Start();
  for (int i = 0; i < 100; ++i) {
    Stream stream = Add(std::to_string(i), 50);
    ASSERT_TRUE(stream->WaitTokens(2));
    Cancel(std::to_string(i));
    ASSERT_TRUE(stream->WaitEnd());
  }
  ExpectAllFree();
}

// A client that goes between its last token and the engine's word of it cancels a request that is
// over; its id may be another request's by then.
TEST_F(EngineLoopTest, ALateCancelDoesNotHitTheNextRequestOfThatId) {
  Start();
  ASSERT_TRUE(Add("same")->WaitEnd());
  const RequestHandle over = handles_.at("same");
  Stream held = AddHeld("same");
  loop_->Cancel(over);
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
  EXPECT_EQ(held->record().reason, FinishReason::kLength);
  EXPECT_EQ(held->record().tokens.size(), 10u);
  // Nor does it use up the new one's own Cancel.
  Stream again = AddHeld("same");
  loop_->Cancel(over);
  Cancel("same");
  gate_.Open();
  ASSERT_TRUE(again->WaitEnd());
  EXPECT_EQ(again->record().reason, FinishReason::kCancelled);
  ExpectAllFree();
}

// The stream's end is its own to know: its id is free before the engine has heard of it.
TEST_F(EngineLoopTest, AfterAStopTheIdIsFreeAtOnceAndTheBlocksSoon) {
  engine_.config.scheduler.max_num_seqs = 1;
  engine_.config.max_queued_requests = 0;  // room for this one only
  Start();
  for (int i = 0; i < 50; ++i) {
    auto stream = std::make_shared<RecordingStream>(3);
    const auto handle = loop_->Add(MakeRequest("same", 9, 50, stream));
    ASSERT_TRUE(handle.ok()) << handle.status();
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().tokens.size(), 3u);
  }
  ASSERT_TRUE(Add("same")->WaitEnd());
  ExpectAllFree();
}

// The engine keeps sampling while a writer is blocked; tokens too late for the stream are dropped
// there.
TEST_F(EngineLoopTest, AStreamThatBlocksHoldsUpNeitherTheEngineNorOtherWriters) {
  Start();
  std::promise<void> release;
  auto blocked =
      std::make_shared<RecordingStream>(2, [done = release.get_future().share()] { done.wait(); });
  ASSERT_TRUE(loop_->Add(MakeRequest("blocked", 9, 50, blocked)).ok());
  Stream other = Add("other", 50);  // the next arrival has the other writer
  ASSERT_TRUE(other->WaitEnd());
  EXPECT_EQ(other->record().tokens.size(), 50u);
  ASSERT_TRUE(Add("another.1")->record().tokens.empty());  // behind the blocked stream
  ASSERT_TRUE(Add("another.2")->WaitEnd());
  ExpectAllFree();
  EXPECT_TRUE(blocked->record().tokens.empty());
  release.set_value();
  ASSERT_TRUE(blocked->WaitEnd());
  loop_->Shutdown();
  EXPECT_EQ(blocked->record().tokens.size(), 2u);
  EXPECT_EQ(blocked->record().reason, FinishReason::kNone);
}

TEST_F(EngineLoopTest, RefusesWhatCanNeverFit) {
  Start();
  const absl::Status status =
      loop_->Add(MakeRequest("a", 60, 10, std::make_shared<RecordingStream>())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(loop_->Stats().waiting, 0);
}

TEST_F(EngineLoopTest, ShutdownEndsEveryRequestAsCancelled) {
  engine_.config.scheduler.max_num_seqs = 2;
  Start();
  Stream held = AddHeld("held");
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(Add(std::to_string(i), 50));
  std::thread stopper([&] { loop_->Shutdown(); });
  // From now on nothing is admitted.
  while (loop_->state() == EngineLoop::State::kServing) std::this_thread::yield();
  EXPECT_EQ(AddCode("late"), absl::StatusCode::kUnavailable);
  gate_.Open();
  stopper.join();
  streams.push_back(held);
  for (Stream& stream : streams) {
    EXPECT_EQ(stream->record().num_ends, 1);
    EXPECT_EQ(stream->record().reason, FinishReason::kCancelled);
    EXPECT_EQ(stream->record().code, absl::StatusCode::kOk);
  }
  EXPECT_EQ(loop_->state(), EngineLoop::State::kStopped);
  EXPECT_EQ(AddCode("late"), absl::StatusCode::kUnavailable);
  Cancel("held");
  loop_->Shutdown();
  ExpectAllFree();
  EXPECT_EQ(loss_.count(), 0);
}

TEST_F(EngineLoopTest, AResetOfThePrefixCacheIsForRequestsAfterIt) {
  Start();
  ASSERT_TRUE(Add("a")->WaitEnd());
  Stream cached = Add("a");
  ASSERT_TRUE(cached->WaitEnd());
  EXPECT_GT(cached->record().usage.cached_tokens, 0u);
  // As often as anyone likes, while nothing takes them.
  gate_.Close();
  Stream held = Add("b");
  gate_.AwaitArrival();
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(loop_->ResetPrefixCache().ok());
  Stream computed = Add("a");
  gate_.Open();
  ASSERT_TRUE(computed->WaitEnd());
  EXPECT_EQ(computed->record().usage.cached_tokens, 0u);
  EXPECT_EQ(computed->record().tokens, cached->record().tokens);
  Stream again = Add("a");
  ASSERT_TRUE(again->WaitEnd());
  EXPECT_GT(again->record().usage.cached_tokens, 0u);
  loop_->Shutdown();
  EXPECT_EQ(loop_->ResetPrefixCache().code(), absl::StatusCode::kUnavailable);
}

TEST_F(EngineLoopTest, AGroupIsTakenWholeOrNotAtAll) {
  engine_.config.scheduler.max_num_seqs = 2;
  engine_.config.max_queued_requests = 2;
  Start();
  const auto group = [&](size_t size) {
    std::vector<Request> requests;
    for (size_t i = 0; i < size; ++i) {
      requests.push_back(MakeRequest("g", 12, 4, std::make_shared<RecordingStream>()));
      requests.back().id = "g" + std::to_string(i);
    }
    return requests;
  };
  const absl::Status never = loop_->AddAll(group(5)).status();
  EXPECT_EQ(never.message(), "the call makes 5 requests, but at most 2 run and 2 wait");
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  gate_.Close();
  Stream held = Add("g2");
  gate_.AwaitArrival();
  EXPECT_EQ(loop_->AddAll(group(4)).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(loop_->AddAll(group(2)).value().size(), 2u);
  std::vector<Request> more = group(2);
  more[0].id = "h0";
  more[1].id = "h1";
  EXPECT_EQ(loop_->AddAll(std::move(more)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(loop_->Add(MakeRequest("h0", 5, 1, std::make_shared<RecordingStream>())).ok());
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
}

TEST_F(EngineLoopTest, AnIdleEngineShutsDown) {
  Start();
  loop_->Shutdown();
  EXPECT_EQ(loop_->state(), EngineLoop::State::kStopped);
}

TEST_F(EngineLoopTest, AWorkerLostInAStepEndsEveryRequestWithItsName) {
  engine_.scripts = {{},
                     {.faults = {{4, SimulatedFault::kDie}}, .delay_polls = 0, .fail_load = false}};
  std::atomic<bool> aborted = false;
  engine_.scripts[0].on_abort = [&] { aborted = true; };
  Start();
  Stream held = AddHeld("held");
  std::vector<Stream> streams = {held};
  for (int i = 0; i < 4; ++i) streams.push_back(Add(std::to_string(i), 50));
  gate_.Open();
  for (Stream& stream : streams) {
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().num_ends, 1);
    EXPECT_EQ(stream->record().code, absl::StatusCode::kUnavailable);
    EXPECT_EQ(stream->record().message, "rank 1 exited with signal 9");
  }
  EXPECT_EQ(loss_.Await(), "rank 1 exited with signal 9");
  EXPECT_EQ(loss_.count(), 1);
  EXPECT_EQ(loop_->state(), EngineLoop::State::kLost);
  const absl::Status refused = AddStatus("late");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.message(), "rank 1 exited with signal 9");
  EXPECT_TRUE(aborted);
  ExpectAllFree();
  loop_->Shutdown();
  EXPECT_EQ(loop_->state(), EngineLoop::State::kStopped);
}

TEST_F(EngineLoopTest, AStuckWorkerIsNamedAtTheStepDeadline) {
  engine_.scripts = {
      {}, {.faults = {{2, SimulatedFault::kHang}}, .delay_polls = 0, .fail_load = false}};
  engine_.config.step_timeout = std::chrono::minutes(10);
  engine_.clock = &clock_;
  Start();
  Stream stream = Add("a");
  ASSERT_TRUE(stream->WaitEnd());
  EXPECT_EQ(stream->record().message, "rank 1 did not answer step 2 in time");
  EXPECT_EQ(loss_.Await(), "rank 1 did not answer step 2 in time");
}

TEST_F(EngineLoopTest, AWorkerLostWhileIdleIsNoticed) {
  engine_.clock = &clock_;
  Start();
  ASSERT_TRUE(Add("a")->WaitEnd());
  workers_[0]->Kill();
  EXPECT_EQ(loss_.Await(), "rank 0 exited with signal 9");
  EXPECT_EQ(AddCode("late"), absl::StatusCode::kUnavailable);
}

TEST_F(EngineLoopTest, WorkersThatEndDuringShutdownAreNoLoss) {
  Start();
  Stream held = AddHeld("held");
  std::thread stopper([&] { loop_->Shutdown(); });
  while (loop_->state() == EngineLoop::State::kServing) std::this_thread::yield();
  workers_[1]->Kill();
  gate_.Open();
  stopper.join();
  EXPECT_EQ(held->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(held->record().code, absl::StatusCode::kOk);
  EXPECT_EQ(loss_.count(), 0);
}

TEST_F(EngineLoopTest, CountsItsTime) {
  Start();
  ASSERT_TRUE(Add("a")->WaitEnd());
  loop_->Shutdown();
  const EngineStepTimings timings = loop_->Timings();
  EXPECT_EQ(timings.steps, 10);
  EXPECT_EQ(loop_->Stats().steps, 10);
  for (int64_t part : {timings.schedule_ns, timings.build_ns, timings.submit_ns, timings.wait_ns,
                       timings.apply_ns}) {
    EXPECT_GT(part, 0);
  }
}

}  // namespace
}  // namespace tandem::coordinator
