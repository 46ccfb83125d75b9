#include "tests/load/load_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "tests/load/progress_bar.h"

namespace tandem::load {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

// Requests end when the test says so.
class ManualBackend : public Backend {
 public:
  absl::StatusOr<ModelFacts> Model(Deadline) override {
    MutexLock lock(mutex_);
    ++questions_;
    if (!model_.ok()) return model_;
    return ModelFacts{.name = "m", .vocab_size = 10, .special_ids = {}};
  }
  absl::StatusOr<uint32_t> CountTokens(const std::string&) override { return 1; }
  absl::StatusOr<StatsPoint> Stats(Deadline) override {
    return absl::UnimplementedError("no statistics");
  }
  void Start(const LoadRequest&, AnswerListener& listener) override {
    MutexLock lock(mutex_);
    in_flight_.push_back(&listener);
    ++started_;
    most_ = std::max(most_, in_flight_.size());
    changed_.NotifyAll();
  }
  void CancelAll() override {
    while (AnswerListener* listener = Pop()) listener->OnEnd(absl::CancelledError("cut"), {});
  }

  // Waits until `count` requests have been started.
  bool WaitStarted(size_t count) {
    MutexLock lock(mutex_);
    return changed_.Wait(lock, Deadline::After(kPatience),
                         [&]() TANDEM_REQUIRES(mutex_) { return started_ >= count; });
  }
  // The oldest request in flight.
  AnswerListener* Pop() {
    MutexLock lock(mutex_);
    if (in_flight_.empty()) return nullptr;
    AnswerListener* listener = in_flight_.front();
    in_flight_.erase(in_flight_.begin());
    return listener;
  }
  void SetModel(const absl::Status& status) {
    MutexLock lock(mutex_);
    model_ = status;
  }
  size_t started() {
    MutexLock lock(mutex_);
    return started_;
  }
  size_t most_in_flight() {
    MutexLock lock(mutex_);
    return most_;
  }
  size_t questions() {
    MutexLock lock(mutex_);
    return questions_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<AnswerListener*> in_flight_ TANDEM_GUARDED_BY(mutex_);
  size_t started_ TANDEM_GUARDED_BY(mutex_) = 0;
  size_t most_ TANDEM_GUARDED_BY(mutex_) = 0;
  size_t questions_ TANDEM_GUARDED_BY(mutex_) = 0;
  absl::Status model_ TANDEM_GUARDED_BY(mutex_);
};

std::vector<LoadRequest> Requests(size_t count) {
  std::vector<LoadRequest> requests(count);
  for (LoadRequest& request : requests) request.output_tokens = 2;
  return requests;
}

void Complete(AnswerListener* listener) {
  EXPECT_EQ(listener->OnTokens(1), Next::kRead);
  EXPECT_EQ(listener->OnTokens(1), Next::kRead);
  listener->OnEnd(absl::OkStatus(), {.prompt_tokens = 5, .completion_tokens = 2});
}

// The record of a run while `other`, its server or its user, acts on another thread.
RunRecord RunWith(Backend& backend, const std::vector<LoadRequest>& requests,
                  const RunSettings& settings, const std::function<void(LoadRun&)>& other) {
  LoadRun run(backend, requests, settings);
  std::thread thread([&] { other(run); });
  RunRecord record = run.Run();
  thread.join();
  return record;
}

TEST(LoadRunTest, AllAtOnceCountsFromTheStart) {
  ManualBackend backend;
  const auto requests = Requests(3);
  const RunSettings settings;
  LoadRun run(backend, requests, settings);
  std::thread server([&] {
    EXPECT_TRUE(backend.WaitStarted(3));
    EXPECT_EQ(run.Progress().in_flight, 3u);
    while (AnswerListener* listener = backend.Pop()) Complete(listener);
  });
  const RunRecord record = run.Run();
  server.join();
  ASSERT_EQ(record.samples.size(), 3u);
  for (const Sample& sample : record.samples) {
    EXPECT_TRUE(sample.completed());
    EXPECT_EQ(sample.intended_s, 0);
    EXPECT_GE(sample.ttft_s(), 0);
    EXPECT_GE(sample.end_s, sample.arrivals.back().at_s);
    EXPECT_LE(sample.end_s, record.duration_s);
    EXPECT_EQ(sample.prompt_tokens, 5u);
    EXPECT_EQ(sample.output_tokens, 2u);
  }
  EXPECT_EQ(record.end, RunEnd::kDone);
  EXPECT_EQ(run.Progress().ended, 3u);
  EXPECT_EQ(run.Progress().tokens, 6u);
}

TEST(LoadRunTest, AClosedLoopKeepsItsLimit) {
  ManualBackend backend;
  const auto requests = Requests(7);
  const RunSettings settings{.max_concurrency = 2};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_TRUE(backend.WaitStarted(std::min<size_t>(i + 2, 7)));
      Complete(backend.Pop());
    }
  });
  EXPECT_EQ(record.samples.size(), 7u);
  EXPECT_EQ(backend.most_in_flight(), 2u);
  // The time at which a place was free, not the run's start.
  EXPECT_GT(record.samples[6].intended_s, record.samples[0].end_s);
}

TEST(LoadRunTest, AnOpenLoopCountsTheWaitForAPlace) {
  ManualBackend backend;
  const auto requests = Requests(2);
  const RunSettings settings{.times_s = {0, 0.001}, .max_concurrency = 1};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(1));
    Complete(backend.Pop());
    EXPECT_TRUE(backend.WaitStarted(2));
    Complete(backend.Pop());
  });
  EXPECT_EQ(record.samples[1].intended_s, 0.001);
  EXPECT_GE(record.samples[1].sent_s, 0.001);
}

TEST(LoadRunTest, CancelsAfterItsMessages) {
  ManualBackend backend;
  auto requests = Requests(1);
  requests[0].cancel_after_messages = 2;
  const RunSettings settings;
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(1));
    AnswerListener* listener = backend.Pop();
    EXPECT_EQ(listener->OnTokens(1), Next::kRead);
    EXPECT_EQ(listener->OnTokens(1), Next::kCancel);
    listener->OnEnd(absl::CancelledError("by the client"), {});
  });
  EXPECT_EQ(record.samples[0].outcome, Outcome::kCancelled);
  EXPECT_EQ(record.end, RunEnd::kDone);
}

TEST(LoadRunTest, ASlowReaderReadsLater) {
  ManualBackend backend;
  auto requests = Requests(1);
  requests[0].slow_reader = true;
  const RunSettings settings;
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(1));
    AnswerListener* listener = backend.Pop();
    EXPECT_EQ(listener->OnTokens(1), Next::kReadLater);
    listener->OnEnd(absl::OkStatus(), {});
  });
  EXPECT_TRUE(record.samples[0].completed());
  EXPECT_FALSE(record.samples[0].has_latency());
}

TEST(LoadRunTest, FailuresAreCountedAndDoNotEndTheRun) {
  ManualBackend backend;
  const auto requests = Requests(2);
  const RunSettings settings{.max_concurrency = 1};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(1));
    backend.Pop()->OnEnd(absl::ResourceExhaustedError("the queue is full"), {});
    EXPECT_TRUE(backend.WaitStarted(2));
    backend.Pop()->OnEnd(absl::OkStatus(), {});
  });
  EXPECT_EQ(record.samples[0].outcome, Outcome::kFailed);
  EXPECT_EQ(record.samples[0].error, "the queue is full");
  EXPECT_EQ(record.samples[1].outcome, Outcome::kFailed);
  EXPECT_EQ(record.samples[1].error, "the answer has no token");
  EXPECT_EQ(record.end, RunEnd::kDone);
  EXPECT_EQ(backend.questions(), 0u);
}

TEST(LoadRunTest, AServerThatIsLostEndsTheRun) {
  ManualBackend backend;
  const auto requests = Requests(9);
  const RunSettings settings{.max_concurrency = 3};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(3));
    backend.SetModel(absl::UnavailableError("gone"));
    backend.Pop()->OnEnd(absl::UnavailableError("connection reset"), {});
  });
  EXPECT_EQ(record.end, RunEnd::kServerLost);
  EXPECT_EQ(record.end_reason, "the server is lost: connection reset");
  EXPECT_EQ(record.samples[0].outcome, Outcome::kFailed);
  EXPECT_EQ(record.samples[1].outcome, Outcome::kCut);
  EXPECT_EQ(record.samples.size() + record.not_sent, 9u);
}

TEST(LoadRunTest, AServerThatStillAnswersIsNotLost) {
  ManualBackend backend;
  const auto requests = Requests(2);
  const RunSettings settings{.max_concurrency = 1};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(1));
    backend.Pop()->OnEnd(absl::UnavailableError("draining"), {});
    EXPECT_TRUE(backend.WaitStarted(2));
    Complete(backend.Pop());
  });
  EXPECT_EQ(record.end, RunEnd::kDone);
  EXPECT_EQ(backend.questions(), 1u);
}

TEST(LoadRunTest, StopCutsWhatIsInFlight) {
  ManualBackend backend;
  const auto requests = Requests(3);
  const RunSettings settings{.times_s = {0, 0, 1e6}};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun& run) {
    EXPECT_TRUE(backend.WaitStarted(2));
    Complete(backend.Pop());
    run.Stop();
  });
  EXPECT_EQ(record.end, RunEnd::kInterrupted);
  ASSERT_EQ(record.samples.size(), 2u);
  EXPECT_EQ(record.samples[0].outcome, Outcome::kCompleted);
  EXPECT_EQ(record.samples[1].outcome, Outcome::kCut);
  EXPECT_EQ(record.not_sent, 1u);
}

TEST(LoadRunTest, NothingIsSentAfterTheDuration) {
  ManualBackend backend;
  const auto requests = Requests(2);
  const RunSettings settings{.times_s = {0, 100}, .max_duration = std::chrono::seconds(50)};
  const RunRecord record = RunWith(backend, requests, settings, [&](LoadRun&) {
    EXPECT_TRUE(backend.WaitStarted(1));
    Complete(backend.Pop());
  });
  EXPECT_EQ(record.samples.size(), 1u);
  EXPECT_EQ(record.not_sent, 1u);
  EXPECT_EQ(record.end, RunEnd::kDone);
}

TEST(ProgressLineTest, ShowsTheShare) {
  EXPECT_EQ(ProgressLine({.ended = 40, .in_flight = 16, .tokens = 1200, .elapsed_s = 12}, 120),
            "[##########--------------------] 40/120, 16 in flight, 100 tokens/s, 12 s");
  EXPECT_EQ(ProgressLine({}, 0),
            "[------------------------------] 0/0, 0 in flight, 0 tokens/s, 0 s");
}

}  // namespace
}  // namespace tandem::load
