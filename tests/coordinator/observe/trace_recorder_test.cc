#include "coordinator/observe/trace_recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::coordinator {
namespace {

StepSettled Step(uint64_t number) { return {.step = StepId{number}}; }

uint64_t NumberOf(const TraceEvent& event) { return std::get<StepSettled>(event).step.value; }

std::unique_ptr<TraceRecorder::Recording> Start(TraceRecorder& recorder) {
  auto recording = recorder.Start();
  EXPECT_TRUE(recording.ok()) << recording.status();
  return recording.ok() ? *std::move(recording) : nullptr;
}

TEST(TraceRecorderTest, KeepsEventsInOrderUntilTheyAreTaken) {
  TraceRecorder recorder;
  EXPECT_EQ(recorder.recording(), 0u);
  const auto recording = Start(recorder);
  const uint64_t number = recorder.recording();
  EXPECT_NE(number, 0u);
  recorder.Add(number, Step(1));
  recorder.Add(number, Step(2));
  TraceRecorder::Batch batch = recording->Take();
  ASSERT_EQ(batch.events.size(), 2u);
  EXPECT_EQ(NumberOf(batch.events[0]), 1u);
  EXPECT_EQ(NumberOf(batch.events[1]), 2u);
  recorder.Add(number, Step(3));
  batch = recording->Take();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(NumberOf(batch.events[0]), 3u);
  EXPECT_EQ(batch.num_dropped, 0u);
  EXPECT_TRUE(recording->Take().events.empty());
}

TEST(TraceRecorderTest, DropsAndCountsWhatIsNotTakenInTime) {
  TraceRecorder recorder({.most_waiting = 3, .most_events = 100});
  const auto recording = Start(recorder);
  for (uint64_t step = 1; step <= 5; ++step) recorder.Add(recorder.recording(), Step(step));
  TraceRecorder::Batch batch = recording->Take();
  ASSERT_EQ(batch.events.size(), 3u);
  EXPECT_EQ(NumberOf(batch.events.back()), 3u);
  EXPECT_EQ(batch.num_dropped, 2u);
  recorder.Add(recorder.recording(), Step(6));  // there is room again
  batch = recording->Take();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(NumberOf(batch.events[0]), 6u);
  EXPECT_EQ(batch.num_dropped, 2u);
}

TEST(TraceRecorderTest, ARecordingIsBounded) {
  TraceRecorder recorder({.most_waiting = 3, .most_events = 4});
  const auto recording = Start(recorder);
  size_t num_events = 0;
  for (uint64_t step = 1; step <= 6; ++step) {
    recorder.Add(recorder.recording(), Step(step));
    num_events += recording->Take().events.size();
  }
  EXPECT_EQ(num_events, 4u);
  EXPECT_EQ(recording->Take().num_dropped, 2u);
}

TEST(TraceRecorderTest, ThereIsOneRecordingAtATime) {
  TraceRecorder recorder({.most_waiting = 1, .most_events = 1});
  auto first = Start(recorder);
  const uint64_t number = recorder.recording();
  recorder.Add(number, Step(1));
  recorder.Add(number, Step(2));
  const auto second = recorder.Start();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().message(), "another recording is being made; there is one at a time");
  first = nullptr;
  EXPECT_EQ(recorder.recording(), 0u);
  recorder.Add(number, Step(3));
  const auto third = Start(recorder);
  EXPECT_NE(recorder.recording(), number);
  recorder.Add(number, Step(4));  // of the first one
  TraceRecorder::Batch batch = third->Take();
  EXPECT_TRUE(batch.events.empty());
  EXPECT_EQ(batch.num_dropped, 0u);
  recorder.Add(recorder.recording(), Step(5));
  EXPECT_EQ(third->Take().events.size(), 1u);
}

TEST(TraceRecorderTest, WithoutARecordingNothingIsKept) {
  TraceRecorder recorder;
  recorder.Add(0, Step(1));
  recorder.Add(1, Step(2));
  EXPECT_TRUE(Start(recorder)->Take().events.empty());
}

TEST(TraceRecorderTest, EveryEventOfAnotherThreadIsTakenOrCounted) {
  constexpr uint64_t kNumEvents = 20'000;
  TraceRecorder recorder({.most_waiting = 64, .most_events = 10'000});
  const auto recording = Start(recorder);
  const uint64_t number = recorder.recording();
  std::thread engine([&] {
    for (uint64_t step = 1; step <= kNumEvents; ++step) recorder.Add(number, Step(step));
  });
  uint64_t num_taken = 0, last = 0;
  const auto take = [&] {
    const TraceRecorder::Batch batch = recording->Take();
    for (const TraceEvent& event : batch.events) {
      EXPECT_GT(NumberOf(event), last);
      last = NumberOf(event);
    }
    num_taken += batch.events.size();
    return batch.num_dropped;
  };
  uint64_t num_dropped = 0;
  while (num_taken + num_dropped < kNumEvents) num_dropped = take();
  engine.join();
  num_dropped = take();
  EXPECT_EQ(num_taken + num_dropped, kNumEvents);
  EXPECT_LE(num_taken, 10'000u);
}

}  // namespace
}  // namespace tandem::coordinator
