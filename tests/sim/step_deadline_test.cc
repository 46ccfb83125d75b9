// An engine and its workers on a simulated clock: deadlines pass without real waiting.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

TEST(StepDeadlineTest, AStuckWorkerIsNamedWhenTheStepsDeadlineHasPassed) {
  SimulatedClock clock;
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.clock = &clock;
  engine.config.step_timeout = std::chrono::hours(24);
  engine.scripts = {{},
                    {.faults = {{3, SimulatedFault::kHang}}, .delay_polls = 0, .fail_load = false}};
  auto core = engine.Make();
  auto stream = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("a", 9, 10, stream), 1);
  ASSERT_TRUE(core->Step().ok());
  ASSERT_TRUE(core->Step().ok());
  const TimePoint before = clock.Now();
  const absl::Status status = core->Step();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "rank 1 did not answer step 3 in time");
  EXPECT_EQ(clock.Now() - before, std::chrono::hours(24));
  EXPECT_EQ(stream->record().tokens.size(), 2u);
}

}  // namespace
}  // namespace tandem::coordinator
