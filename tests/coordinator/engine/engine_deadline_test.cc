// Requests that nobody waits for any more, on a simulated clock.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/coordinator/engine/engine_fixture.h"
#include "tests/coordinator/engine/engine_loop_fixture.h"

namespace tandem::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class EngineDeadlineTest : public testing::Test {
 protected:
  std::shared_ptr<RecordingStream> Add(const std::string& id, Duration limit,
                                       int32_t priority = 0) {
    auto stream = std::make_shared<RecordingStream>();
    Request request = MakeRequest(id, 9, 20, stream);
    if (limit > Duration::zero()) request.deadline = clock_.Now() + limit;
    request.priority = priority;
    core_->Add(std::move(request), ++last_handle_);
    return stream;
  }
  void Step() {
    const absl::Status status = core_->Step();
    ASSERT_TRUE(status.ok()) << status;
    const absl::Status integrity = core_->CheckIntegrity();
    ASSERT_TRUE(integrity.ok()) << integrity;
  }
  void RunAll() {
    for (int step = 0; !core_->idle(); ++step) {
      ASSERT_LT(step, 1000);
      Step();
    }
    EXPECT_EQ(core_->Stats().free_blocks, core_->Stats().total_blocks);
  }
  void Make(uint32_t max_num_seqs = 16) {
    engine_.config.scheduler.max_num_seqs = max_num_seqs;
    engine_.clock = &clock_;
    core_ = engine_.Make();
  }

  SimulatedClock clock_;
  SimulatedEngine engine_ = SimulatedEngine::Small();
  std::unique_ptr<EngineCore> core_;
  RequestHandle last_handle_ = 0;
};

TEST_F(EngineDeadlineTest, ARunningRequestEndsAtItsDeadlineAndItsBlocksAreFree) {
  Make();
  auto late = Add("late", seconds(1));
  auto other = Add("other", Duration::zero());
  for (int step = 0; step < 5; ++step) Step();
  EXPECT_EQ(late->record().tokens.size(), 5u);
  clock_.Advance(seconds(1) - Duration(1));
  Step();
  EXPECT_EQ(late->record().tokens.size(), 6u);
  clock_.Advance(Duration(1));
  const int64_t free_before = core_->Stats().free_blocks;
  core_->EndExpired();
  const auto record = late->record();
  EXPECT_EQ(record.num_ends, 1);
  EXPECT_EQ(record.code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(record.message,
            "the request's deadline (its call's, or --request-timeout) has passed after 6 of up to "
            "20 tokens");
  EXPECT_EQ(record.usage.completion_tokens, 6u);
  EXPECT_GT(core_->Stats().free_blocks, free_before);
  EXPECT_EQ(core_->Stats().running, 1);
  EXPECT_EQ(core_->Stats().expired, 1);
  RunAll();
  EXPECT_EQ(other->record().reason, FinishReason::kLength);
  EXPECT_EQ(late->record().tokens.size(), 6u);  // nothing of the step in flight
}

TEST_F(EngineDeadlineTest, AWaitingRequestEndsWithoutAStep) {
  Make(/*max_num_seqs=*/1);
  auto first = Add("first", Duration::zero());
  auto waiting = Add("waiting", milliseconds(10));
  Step();
  EXPECT_EQ(waiting->record().num_ends, 0);
  clock_.Advance(milliseconds(10));
  Step();
  EXPECT_EQ(waiting->record().code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(waiting->record().message,
            "the request's deadline (its call's, or --request-timeout) has passed while it waited "
            "for room");
  EXPECT_EQ(core_->Stats().waiting, 0);
  RunAll();
  EXPECT_EQ(first->record().tokens.size(), 20u);
  EXPECT_EQ(core_->Stats().expired, 1);
}

TEST_F(EngineDeadlineTest, OnlyThoseWhoseTimeHasComeEndAndInItsOrder) {
  Make();
  auto c = Add("c", seconds(3));
  auto a = Add("a", seconds(1));
  auto b = Add("b", seconds(2));
  Step();
  clock_.Advance(seconds(2));
  Step();
  EXPECT_EQ(a->record().num_ends, 1);
  EXPECT_EQ(b->record().num_ends, 1);
  EXPECT_EQ(c->record().num_ends, 0);
  RunAll();
  EXPECT_EQ(c->record().reason, FinishReason::kLength);
  clock_.Advance(seconds(5));
  core_->EndExpired();
  EXPECT_EQ(core_->Stats().expired, 2);
}

// gRPC rounds a call's time up, so that a client's own deadline comes before the server's.
TEST_F(EngineDeadlineTest, ACancelALittleBeforeTheDeadlineCountsAsExpired) {
  Make();
  for (const char* id : {"a", "b"}) {
    Request request = MakeRequest(id, 9, 20, std::make_shared<RecordingStream>());
    request.deadline = clock_.Now() + seconds(1);
    request.deadline_slack = milliseconds(10);
    core_->Add(std::move(request), ++last_handle_);
  }
  auto forever = std::make_shared<RecordingStream>();
  Request without = MakeRequest("without a deadline", 9, 20, forever);
  without.deadline_slack = milliseconds(10);
  core_->Add(std::move(without), ++last_handle_);
  clock_.Advance(milliseconds(990) - Duration(1));
  core_->Cancel(1);
  EXPECT_EQ(core_->Stats().expired, 0);
  clock_.Advance(Duration(1));
  core_->Cancel(2);
  EXPECT_EQ(core_->Stats().expired, 1);
  core_->Cancel(3);
  EXPECT_EQ(forever->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(core_->Stats().expired, 1);
}

// gRPC cancels a call at its deadline, which the engine may hear of first.
TEST_F(EngineDeadlineTest, ACancelAfterTheDeadlineCountsAsExpired) {
  Make();
  auto late = Add("late", seconds(1));
  auto early = Add("early", seconds(9));
  Step();
  clock_.Advance(seconds(1));
  core_->Cancel(1);
  core_->Cancel(2);
  EXPECT_EQ(late->record().code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(early->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(core_->Stats().expired, 1);
  RunAll();
}

TEST_F(EngineDeadlineTest, PrioritiesAreWorthTimeOfWaiting) {
  engine_.config.priority_ageing = seconds(2);
  Make(/*max_num_seqs=*/1);
  auto first = Add("first", Duration::zero());
  Step();
  auto patient = Add("patient", Duration::zero(), 2);
  clock_.Advance(seconds(3));
  auto between = Add("between", Duration::zero());
  clock_.Advance(seconds(2));
  auto after = Add("after", Duration::zero());
  while (first->record().num_ends == 0) Step();
  while (between->record().num_ends == 0) Step();
  EXPECT_TRUE(patient->record().tokens.empty());
  while (patient->record().num_ends == 0) Step();
  EXPECT_TRUE(after->record().tokens.empty());
  RunAll();
}

// While workers are replaced no step begins, yet nobody waits longer than agreed.
TEST_F(EngineLoopTest, ADeadlinePassesDuringRecoveryToo) {
  constexpr auto kYear = std::chrono::hours(24 * 365);  // an idle engine moves its clock, too
  engine_.clock = &clock_;
  Stream late;
  recover_ = [&](const absl::Status& loss,
                 const std::function<bool()>& cancelled) -> absl::StatusOr<ReadyWorkers> {
    clock_.Advance(kYear);
    EXPECT_FALSE(cancelled());
    EXPECT_TRUE(late->WaitEnd());
    return loss;
  };
  Start();
  gate_.Close();
  late = std::make_shared<RecordingStream>();
  Request request = MakeRequest("late", 9, 10, late);
  request.deadline = TimePoint() + kYear;
  ASSERT_TRUE(loop_->Add(std::move(request)).ok());
  gate_.AwaitArrival();
  workers_[1]->Kill();
  gate_.Open();
  EXPECT_TRUE(late->WaitEnd());
  EXPECT_EQ(late->record().code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(loss_.Await(), "");
  EXPECT_EQ(loop_->Stats().expired, 1);
}

}  // namespace
}  // namespace tandem::coordinator
