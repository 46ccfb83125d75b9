// Prefill beside decodes is bounded by the time that a step may take, on a machine of known costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A step is 1 ms, a decode 200 us, a prefill token 50 us.
Duration TimeOf(const Plan& plan) {
  const StepLoad load = StepLoad::Of(plan);
  return microseconds(1000 + 200 * load.decode_rows + 50 * load.prefill_tokens);
}

SchedulerConfig Bounded(Duration target_itl) {
  SchedulerConfig config = Config(8, 512, 512);
  config.target_itl = target_itl;
  return config;
}

// Runs a step and lets the scheduler know its time.
Duration TimedStep(Driver& driver) {
  driver.Step();
  const Duration time = TimeOf(driver.last());
  driver.scheduler().NoteStepTime(driver.last(), time);
  return time;
}

uint64_t PrefillTokens(const Plan& plan) { return StepLoad::Of(plan).prefill_tokens; }

TEST(TargetItlTest, WithoutDecodesNothingIsBounded) {
  Driver driver(Bounded(milliseconds(5)), 1024);
  driver.Add(400);
  EXPECT_EQ(driver.Step(), "prefill 1+400");
}

TEST(TargetItlTest, WithoutATargetPromptsComeWhole) {
  Driver driver(Bounded({}), 1024);
  driver.Add(10);
  TimedStep(driver);
  driver.Add(400);
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+400");
}

TEST(TargetItlTest, StepsStayWithinTheTargetWhileLongPromptsArrive) {
  for (const SchedulingPolicy policy :
       {SchedulingPolicy::kDecodeFirst, SchedulingPolicy::kPrefillFirst}) {
    SchedulerConfig config = Bounded(milliseconds(5));
    config.policy = policy;
    Driver driver(config, 2048);
    driver.Add(10);
    driver.Add(10);
    TimedStep(driver);
    for (int prompt = 0; prompt < 4; ++prompt) driver.Add(1000);
    std::vector<uint64_t> prefill;
    int num_steps = 0;
    while (driver.scheduler().num_waiting() > 0 ||
           PrefillTokens(driver.last()) + driver.last().entries.size() > 6) {
      ASSERT_LT(++num_steps, 200);
      // The first costs are guesses from one or two steps.
      EXPECT_LE(TimedStep(driver), num_steps <= 3 ? milliseconds(6) : microseconds(5050))
          << num_steps;
      prefill.push_back(PrefillTokens(driver.last()));
    }
    // Once learned, a step is as full as it may be: 5 ms less 1 ms and two decodes.
    std::ranges::sort(prefill);
    EXPECT_GE(prefill[prefill.size() / 2], 50u);
  }
}

TEST(TargetItlTest, ATargetThatCannotBeMetStillEndsPrompts) {
  Driver driver(Bounded(microseconds(1)), 1024);
  driver.Add(10);
  TimedStep(driver);
  Sequence& prompt = driver.Add(40);
  for (int step = 0; step < 10; ++step) {
    TimedStep(driver);
    EXPECT_EQ(PrefillTokens(driver.last()), kBlockSize) << step;
  }
  EXPECT_EQ(prompt.num_generated(), 1u);
}

// Before anything is known of prefill beside decodes, it begins with a block and doubles.
TEST(TargetItlTest, WhatIsNotKnownIsTriedInSmallSteps) {
  Driver driver(Bounded(milliseconds(100)), 1024);
  driver.Add(1);
  driver.Step();  // its time is not known: no sample has prefill
  driver.scheduler().NoteStepTime(driver.last(), TimeOf(driver.last()));
  driver.Add(400);
  std::vector<uint64_t> prefill;
  for (int step = 0; step < 5; ++step) {
    TimedStep(driver);
    prefill.push_back(PrefillTokens(driver.last()));
  }
  EXPECT_EQ(prefill, (std::vector<uint64_t>{4, 8, 16, 32, 64}));
}

// A sequence that must know its token first is in every second step, and waits for the other one.
TEST(TargetItlTest, WhatWaitsForItsTokenBoundsTheStepToo) {
  SchedulerConfig config = Bounded(milliseconds(2));
  Driver driver(config, 1024);
  Sequence& a = driver.Add(10);
  a.needs_known_tokens = true;
  driver.Submit();
  driver.Add(100);
  driver.Submit();  // its only decode is pending
  EXPECT_LE(PrefillTokens(driver.last()), 8u);
  driver.Collect();
  driver.Collect();
}

}  // namespace
}  // namespace tandem::coordinator
