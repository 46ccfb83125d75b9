#include "coordinator/scheduler/step_time_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace tandem::coordinator {
namespace {

using std::chrono::microseconds;

// A machine of known costs.
Duration TimeOf(const StepLoad& load, double slowness = 1) {
  const double us = 400 + 90.0 * static_cast<double>(load.decode_rows) +
                    0.05 * static_cast<double>(load.decode_positions) +
                    30.0 * static_cast<double>(load.prefill_tokens) +
                    0.01 * static_cast<double>(load.prefill_positions);
  return Duration(static_cast<int64_t>(1000 * slowness * us));
}

StepLoad Decode(uint64_t rows, uint32_t position) {
  StepLoad load;
  for (uint64_t row = 0; row < rows; ++row) load.AddDecode(position);
  return load;
}

double RelativeError(const StepTimeModel& model, const StepLoad& load, double slowness = 1) {
  const Duration truth = TimeOf(load, slowness);
  return std::abs(static_cast<double>((model.Predict(load) - truth).count())) /
         static_cast<double>(truth.count());
}

// Steps as they come: decodes whose contexts grow, and prompts in chunks beside some of them.
void LearnFrom(std::mt19937& random, int num_steps, StepTimeModel& model, double slowness = 1) {
  for (int step = 0; step < num_steps; ++step) {
    StepLoad load = Decode(1 + random() % 16, random() % 2000);
    if (random() % 2 == 0) load.AddPrefill(random() % 1500, 1 + random() % 256);
    model.Learn(load, TimeOf(load, slowness));
  }
}

TEST(StepLoadTest, CountsRowsTokensAndWhatTheySee) {
  StepLoad load;
  load.AddDecode(9);
  load.AddDecode(4);
  load.AddPrefill(10, 3);  // they see 11, 12 and 13 positions
  load.AddPrefill(0, 2);
  EXPECT_EQ(load.decode_rows, 2u);
  EXPECT_EQ(load.decode_positions, 15u);
  EXPECT_EQ(load.prefill_tokens, 5u);
  EXPECT_EQ(load.prefill_positions, 39u);
}

TEST(StepLoadTest, EveryDraftIsARow) {
  Plan plan;
  plan.entries = {{.begin = 10, .num_tokens = 3, .phase = Phase::kDecode, .num_drafts = 2},
                  {.begin = 4, .num_tokens = 1, .phase = Phase::kDecode},
                  {.begin = 0, .num_tokens = 2, .phase = Phase::kPrefill}};
  const StepLoad load = StepLoad::Of(plan);
  EXPECT_EQ(load.decode_rows, 4u);
  EXPECT_EQ(load.decode_positions, 11u + 12 + 13 + 5);
  EXPECT_EQ(load.prefill_tokens, 2u);
  EXPECT_EQ(load.prefill_positions, 3u);
}

TEST(StepTimeModelTest, KnowsNothingAtFirst) {
  const StepTimeModel model;
  EXPECT_EQ(model.Predict(Decode(3, 100)), Duration::zero());
  EXPECT_EQ(model.most_prefill_tokens(), 0u);
}

TEST(StepTimeModelTest, LearnsTheCostsOfAMachine) {
  std::mt19937 random(1);
  StepTimeModel model;
  LearnFrom(random, 400, model);
  for (int i = 0; i < 100; ++i) {
    StepLoad load = Decode(random() % 16, random() % 2000);
    load.AddPrefill(random() % 1500, random() % 256);
    EXPECT_LT(RelativeError(model, load), 0.05);
  }
}

TEST(StepTimeModelTest, FollowsAMachineThatBecomesSlower) {
  std::mt19937 random(2);
  StepTimeModel model;
  LearnFrom(random, 300, model);
  LearnFrom(random, 300, model, /*slowness=*/3);
  StepLoad load = Decode(4, 500);
  load.AddPrefill(0, 128);
  EXPECT_LT(RelativeError(model, load, 3), 0.05);
}

// Its samples are in a window of their own.
TEST(StepTimeModelTest, RemembersPrefillThroughALongTimeOfDecoding) {
  std::mt19937 random(3);
  StepTimeModel model;
  LearnFrom(random, 200, model);
  for (uint32_t step = 0; step < 5000; ++step)
    model.Learn(Decode(4, step), TimeOf(Decode(4, step)));
  StepLoad load = Decode(4, 3000);
  load.AddPrefill(500, 128);
  EXPECT_LT(RelativeError(model, load), 0.1);
  EXPECT_GT(model.most_prefill_tokens(), 128u);
}

// Steps that take up to half as long again as others of their load.
TEST(StepTimeModelTest, FewStepsWithPrefillTakeLongerThanPredicted) {
  std::mt19937 random(5);
  StepTimeModel model;
  std::uniform_real_distribution<double> slowness(1, 1.5);
  int num_longer = 0;
  for (int step = 0; step < 2000; ++step) {
    StepLoad load = Decode(1 + random() % 16, random() % 2000);
    load.AddPrefill(random() % 1500, 1 + random() % 256);
    const Duration time = TimeOf(load, slowness(random));
    if (step >= 200 && time > model.Predict(load)) ++num_longer;
    model.Learn(load, time);
  }
  EXPECT_LT(num_longer, 300);  // of 1800; half of them by the fitted costs alone
  EXPECT_GT(num_longer, 60);
}

// Memory that is touched for the first time, a file that is read.
TEST(StepTimeModelTest, ASlowFirstStepDoesNotStretchAllOthers) {
  StepTimeModel model;
  StepLoad load = Decode(4, 100);
  load.AddPrefill(0, 64);
  model.Learn(load, 20 * TimeOf(load));
  for (int step = 0; step < 8; ++step) model.Learn(load, TimeOf(load));
  EXPECT_LT(model.Predict(load), 4 * TimeOf(load));
}

// Times that no costs explain: more work never takes less time in what it predicts.
TEST(StepTimeModelTest, NoCostIsNegative) {
  std::mt19937 random(4);
  StepTimeModel model;
  for (int step = 0; step < 200; ++step) {
    StepLoad load = Decode(1 + random() % 8, random() % 100);
    load.AddPrefill(random() % 100, 1 + random() % 100);
    model.Learn(load, microseconds(1 + random() % 5000));
    StepLoad more = load;
    more.AddDecode(50);
    more.AddPrefill(10, 20);
    ASSERT_LE(model.Predict(load), model.Predict(more));
    ASSERT_GE(model.Predict({}), Duration::zero());
  }
}

TEST(StepTimeModelTest, OneSlowStepDoesNotCountForever) {
  std::mt19937 random(5);
  StepTimeModel model;
  LearnFrom(random, 100, model);
  model.Learn(Decode(4, 100), std::chrono::seconds(3));
  LearnFrom(random, 200, model);
  EXPECT_LT(RelativeError(model, Decode(4, 100)), 0.05);
}

}  // namespace
}  // namespace tandem::coordinator
