#include "coordinator/simulation/paced_worker.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/status/status.h"
#include "common/base/event_clock.h"
#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// 100 us for one token, 10 us for each more, and as much for each sequence.
StepMeasurements Measured() {
  return {.prefill = {.sizes = {1, 11}, .us = {100, 200}},
          .decode = {.sizes = {1, 11}, .us = {100, 200}}};
}

// Of sequences of `query_lens` new tokens after 5, with `num_rows` rows.
std::vector<uint8_t> Frame(uint64_t id, const std::vector<uint32_t>& query_lens, size_t num_rows) {
  step::StepDescriptor step;
  step.step_id = StepId{id};
  step.epoch = Epoch{3};
  for (const uint32_t length : query_lens) {
    step.sequences.push_back({.query_len = length, .context_len = 5 + length});
  }
  step.rows.resize(num_rows);
  step.sampling.resize(num_rows);
  std::vector<uint8_t> frame;
  step::Serialize(step, frame);
  return frame;
}

class PacedWorkerTest : public testing::Test {
 protected:
  void Submit(uint64_t id, const std::vector<uint32_t>& query_lens, size_t num_rows = 1) {
    const absl::Status status =
        worker_.Submit(Frame(id, query_lens, num_rows), Deadline::After(seconds(1), clock_));
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<step::StepResult> Collect(Duration wait = seconds(1)) {
    return worker_.Collect(Deadline::After(wait, clock_));
  }
  Duration Passed() const { return clock_.Now() - TimePoint{}; }

  EventClock clock_;
  PacedWorker worker_{Measured(), clock_};
};

TEST_F(PacedWorkerTest, AStepTakesItsTimeOnTheClock) {
  Submit(7, {1, 1, 1}, 3);
  const auto result = Collect();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Passed(), microseconds(120));
  EXPECT_EQ(result->step_id, StepId{7});
  EXPECT_EQ(result->epoch, Epoch{3});
  EXPECT_EQ(result->timings.wait_us, 120u);
  ASSERT_EQ(result->rows.size(), 3u);
  for (const step::RowResult& row : result->rows) EXPECT_EQ(row.tokens, std::vector<TokenId>{0});
}

TEST_F(PacedWorkerTest, StepsInFlightWaitForEachOther) {
  Submit(1, {4});
  Submit(2, {1});
  ASSERT_TRUE(Collect().ok());
  EXPECT_EQ(Passed(), microseconds(130));
  ASSERT_TRUE(Collect().ok());
  EXPECT_EQ(Passed(), microseconds(230));
}

TEST_F(PacedWorkerTest, AnIdleWorkerBeginsWhenAStepComes) {
  Submit(1, {1});
  ASSERT_TRUE(Collect().ok());
  clock_.WaitFor(seconds(5), [] { return false; });
  Submit(2, {1});
  ASSERT_TRUE(Collect().ok());
  EXPECT_EQ(Passed(), seconds(5) + microseconds(200));
}

TEST_F(PacedWorkerTest, ADeadlineBeforeTheEndHasNoAnswer) {
  Submit(1, {1});
  EXPECT_TRUE(absl::IsDeadlineExceeded(Collect(microseconds(60)).status()));
  EXPECT_EQ(Passed(), microseconds(60));
  EXPECT_TRUE(Collect().ok());
  EXPECT_EQ(Passed(), microseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Collect().status())) << "no step is in flight";
}

TEST_F(PacedWorkerTest, EventsHappenWhileItComputes) {
  TimePoint at{};
  clock_.After(microseconds(30), [&] { at = clock_.Now(); });
  Submit(1, {1});
  ASSERT_TRUE(Collect().ok());
  EXPECT_EQ(at - TimePoint{}, microseconds(30));
  EXPECT_EQ(Passed(), microseconds(100));
}

TEST_F(PacedWorkerTest, BytesThatAreNoStepAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      worker_.Submit(std::vector<uint8_t>{1, 2, 3}, Deadline::After(seconds(1), clock_))));
}

}  // namespace
}  // namespace tandem::coordinator
