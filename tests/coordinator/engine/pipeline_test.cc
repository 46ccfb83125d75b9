#include "coordinator/engine/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr Duration kTimeout = std::chrono::hours(1);

class PipelineTest : public testing::Test {
 protected:
  // `depth` steps in flight on one worker.
  void Start(uint32_t depth, SimulatedScript script = {}) {
    engine_.ranks = 1;
    auto clients = MakeSimulatedWorkers(1, engine_.Model(), engine_.NumBlocks(), {script});
    WorkerGroup group(std::move(clients));
    const Deadline deadline = Deadline::After(kTimeout, clock_);
    ASSERT_TRUE(group.Bring(engine_.WorkerOf(), {engine_.AssignmentOf(0)}, deadline).ok());
    pipeline_ = std::make_unique<Pipeline>(std::move(group), depth, engine_.config.vocab_size,
                                           engine_.config.hidden_size, kTimeout, clock_);
  }

  // A step of one token, of a sequence that is new in the slot of the step's number.
  Step MakeStep(uint32_t id) const {
    Step step;
    step.plan.num_tokens = id;  // to know it by
    step.descriptor.step_id = StepId{id};
    step.descriptor.epoch = engine_.config.epoch;
    step.descriptor.num_scheduled_tokens = step.descriptor.num_seqs_active = 1;
    step.descriptor.tokens = {static_cast<TokenId>(id)};
    step.descriptor.positions = {0};
    step.descriptor.query_offsets = {0, 1};
    step.descriptor.sequences = {{.slot = id, .query_len = 1, .context_len = 1}};
    step.descriptor.groups = {
        {.tables = {{.length_before = 0, .length_after = 1, .first_live = 0}},
         .blocks = {static_cast<BlockId>(id)},
         .slot_mapping = {static_cast<int32_t>(id * engine_.config.kv_cache.block_size)}}};
    step.descriptor.rows = {{.token = 0}};
    step.descriptor.sampling = {{.position = 1}};
    return step;
  }

  SimulatedClock clock_;
  SimulatedEngine engine_ = SimulatedEngine::Small();
  std::unique_ptr<Pipeline> pipeline_;
};

class PipelineDepthTest : public PipelineTest, public testing::WithParamInterface<uint32_t> {};

TEST_P(PipelineDepthTest, StepsSettleInTheOrderOfTheirSubmission) {
  const uint32_t depth = GetParam();
  ASSERT_NO_FATAL_FAILURE(Start(depth));
  uint32_t submitted = 0;
  for (uint32_t settled = 1; settled <= 8; ++settled) {
    while (!pipeline_->full() && submitted < 8) {
      ASSERT_TRUE(pipeline_->Submit(MakeStep(++submitted)).ok());
    }
    EXPECT_EQ(submitted, std::min(settled + depth - 1, 8u));
    const auto answer = pipeline_->Collect();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->step.plan.num_tokens, settled);
    EXPECT_EQ(answer->step.descriptor.step_id, StepId{settled});
    EXPECT_EQ(answer->result.step_id, StepId{settled});
    EXPECT_EQ(answer->result.rows.size(), 1u);
  }
  EXPECT_TRUE(pipeline_->empty());
}

TEST_P(PipelineDepthTest, AResultOutOfOrderIsRefused) {
  ASSERT_NO_FATAL_FAILURE(
      Start(GetParam(), {.faults = {{1, SimulatedFault::kWrongStepId}}, .delay_polls = 0}));
  for (uint32_t id = 1; !pipeline_->full(); ++id) {
    ASSERT_TRUE(pipeline_->Submit(MakeStep(id)).ok());
  }
  const auto answer = pipeline_->Collect();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(answer.status().message(),
            "rank 0 answered as rank 0 epoch 5 step 2, needed epoch 5 step 1");
}

INSTANTIATE_TEST_SUITE_P(Depths, PipelineDepthTest, testing::Values(1, 2, 3));

// A step waits behind those before it: its own time begins when they have ended.
TEST_F(PipelineTest, TheDeadlineOfAStepBeginsWithIt) {
  ASSERT_NO_FATAL_FAILURE(Start(2, {.faults = {{2, SimulatedFault::kHang}}, .delay_polls = 0}));
  ASSERT_TRUE(pipeline_->Submit(MakeStep(1)).ok());
  ASSERT_TRUE(pipeline_->Submit(MakeStep(2)).ok());
  clock_.Advance(kTimeout / 2);
  ASSERT_TRUE(pipeline_->Collect().ok());
  const TimePoint before = clock_.Now();
  EXPECT_EQ(pipeline_->Collect().status().message(), "rank 0 did not answer step 2 in time");
  EXPECT_EQ(clock_.Now() - before, kTimeout);
}

TEST_F(PipelineTest, DrainDropsWhatIsInFlightAndTellsTheWorkers) {
  bool aborted = false;
  SimulatedScript script;
  script.on_abort = [&] { aborted = true; };
  ASSERT_NO_FATAL_FAILURE(Start(3, script));
  ASSERT_TRUE(pipeline_->Submit(MakeStep(1)).ok());
  ASSERT_TRUE(pipeline_->Submit(MakeStep(2)).ok());
  EXPECT_FALSE(pipeline_->full());
  pipeline_->Drain(absl::CancelledError("enough"));
  EXPECT_TRUE(pipeline_->empty());
  EXPECT_TRUE(aborted);
}

using PipelineDeathTest = PipelineTest;

TEST_F(PipelineDeathTest, MoreThanItsDepthOrLessThanNothingIsABug) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  EXPECT_DEATH(pipeline_->Collect().IgnoreError(), "no step is in flight");
  ASSERT_TRUE(pipeline_->Submit(MakeStep(1)).ok());
  EXPECT_DEATH(pipeline_->Submit(MakeStep(2)).IgnoreError(), "1 steps are in flight already");
}

}  // namespace
}  // namespace tandem::coordinator
