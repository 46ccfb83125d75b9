// Drafts of a step: each rule by one mutation of a valid step.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "common/step/descriptor.h"
#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

// The example, in which the last two tokens of the second sequence are drafts.
StepDescriptor StepWithDrafts() {
  StepDescriptor step = ExampleStep();
  step.sequences[1].num_drafts = 2;
  step.tokens[2] = step.tokens[3] = 0;
  constexpr uint32_t kWants = kWantSample | kWantGuess;
  step.rows = {
      step.rows[0], {.token = 1, .wants = kWants}, {.token = 2, .wants = kWants}, {.token = 3}};
  step.sampling.resize(4);
  return step;
}

TEST(ValidateDraftsTest, AcceptsThemIfTheWorkersGuess) {
  const StepDescriptor step = StepWithDrafts();
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()), absl::OkStatus());
  StepLimits limits = ExampleLimits();
  limits.workers_guess = false;
  EXPECT_EQ(Validate(step, limits, ExampleTables()).message(),
            "step: row 1 wants a guess, and the workers have no draft model or head");
}

TEST(ValidateDraftsTest, AStepWithoutGuessesMaySkipTheGuesserIfThereIsOne) {
  StepDescriptor step = ExampleStep();
  step.skips_guesser = true;
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()), absl::OkStatus());
  StepLimits limits = ExampleLimits();
  limits.workers_guess = false;
  EXPECT_EQ(Validate(step, limits, ExampleTables()).message(),
            "step: it skips the guesser, and the workers have no draft model or head");
}

// Those before them are computed again.
TEST(ValidateDraftsTest, AcceptsThemAfterSeveralTokens) {
  StepDescriptor step = StepWithDrafts();
  step.sequences[1].num_drafts = 1;
  step.tokens[2] = 9;
  step.rows.erase(step.rows.begin() + 1);
  step.sampling.pop_back();
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()), absl::OkStatus());
  step.rows[1].token = 1;
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()).message(),
            "step: token 3 is a draft, and no row wants the guess after token 2");
}

struct Case {
  const char* name;
  std::function<void(StepDescriptor&)> mutate;
  const char* message;  // part of the error
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"WithAnId", [](auto& s) { s.tokens[3] = 9; }, "token 3 has id 9 and is a draft, needed id 0"},
    {"AfterNoToken", [](auto& s) { s.sequences[1].num_drafts = 3; },
     "sequence 1 of 3 tokens has 3 drafts, needed a token before them"},
    {"WithoutAGuess", [](auto& s) { s.rows[2].wants = kWantSample; },
     "token 3 is a draft, and no row wants the guess after token 2"},
    {"WithoutARow",
     [](auto& s) {
       s.rows.erase(s.rows.begin() + 1);
       s.sampling.pop_back();
     },
     "token 2 is a draft, and no row wants the guess after token 1"},
    {"WithAReference", [](auto& s) { s.references = {{.token = 3, .sample = 0}}; },
     "token 3 has a reference and is a draft"},
    {"GuessWithoutASample", [](auto& s) { s.rows[0].wants = kWantGuess | kWantLogits; },
     "row 0 wants a guess, and no sample"},
    {"SkippingTheGuesser", [](auto& s) { s.skips_guesser = true; },
     "row 1 wants a guess, and the step skips the guesser"},
};

class ValidateDraftsRule : public testing::TestWithParam<Case> {};

TEST_P(ValidateDraftsRule, RefusesTheMutation) {
  StepDescriptor step = StepWithDrafts();
  GetParam().mutate(step);
  const absl::Status status = Validate(step, ExampleLimits(), ExampleTables());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(Rules, ValidateDraftsRule, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tandem::step
