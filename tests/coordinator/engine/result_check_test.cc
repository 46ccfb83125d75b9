#include "coordinator/engine/result_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace tandem::coordinator {
namespace {

constexpr uint32_t kVocab = 5;
constexpr uint32_t kHidden = 3;

step::StepDescriptor Asked() {
  step::StepDescriptor step;
  step.step_id = StepId{9};
  step.rows = {{.token = 0, .wants = step::kWantLogprobsOf, .logprobs_of = {3}},
               {.token = 1,
                .wants = step::kWantSample | step::kWantSampleLogprob | step::kWantTopLogprobs,
                .top_n = 2},
               {.token = 2, .wants = step::kWantSample | step::kWantLogits | step::kWantGuess},
               {.token = 3,
                .wants = step::kWantSample | step::kWantSampleLogprob | step::kWantLogits,
                .max_tokens = 3}};
  step.pools = {{.begin = 0, .end = 2}, {.begin = 2, .end = 3}};
  return step;
}

step::StepResult Answered() {
  step::StepResult result;
  result.rows = {{.logprobs = {{3, -1.0f, 2}}},
                 {.tokens = {4}, .logprobs = {{4, -3.0f, 5}, {0, -0.5f, 1}, {2, -1.0f, 2}}},
                 {.tokens = {0}, .logits = std::vector<float>(kVocab)},
                 {.tokens = {1, 2},
                  .logprobs = {{1, -1.0f, 1}, {2, -2.0f, 1}},
                  .logits = std::vector<float>(2 * kVocab)}};
  result.pooled.resize(size_t{2} * kHidden);
  result.guesses = {step::kNotFinite};
  return result;
}

TEST(ResultCheckTest, TakesWhatWasAskedFor) {
  EXPECT_EQ(CheckResult(Asked(), Answered(), kVocab, kHidden), absl::OkStatus());
}

struct Case {
  const char* name;
  std::function<void(step::StepResult&)> spoil;
  const char* message;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"NoRows", [](auto& r) { r.rows.clear(); }, "0 rows of 4 in step 9"},
    {"MoreRows", [](auto& r) { r.rows.emplace_back(); }, "5 rows of 4"},
    {"NoSample", [](auto& r) { r.rows[1].tokens.clear(); }, "row 1 of step 9"},
    {"UnwantedSample", [](auto& r) { r.rows[0].tokens = {1}; }, "row 0"},
    {"SampleAboveVocabulary", [](auto& r) { r.rows[2].tokens = {5}; }, "row 2"},
    {"NegativeSample", [](auto& r) { r.rows[2].tokens = {-2}; }, "the first -2"},
    {"LogitsShort", [](auto& r) { r.rows[2].logits.pop_back(); }, "4 logits"},
    {"UnwantedLogits", [](auto& r) { r.rows[1].logits = {1}; }, "row 1"},
    {"NoLogprobs", [](auto& r) { r.rows[0].logprobs.clear(); }, "0 log-probabilities"},
    {"MoreLogprobs",
     [](auto& r) {
       r.rows[1].logprobs.push_back({1, -1, 3});
     },
     "4 log-probabilities"},
    {"LogprobOfAnother", [](auto& r) { r.rows[0].logprobs[0].token = 2; }, "row 0"},
    {"LogprobOfAnotherSample", [](auto& r) { r.rows[1].logprobs[0].token = 0; }, "row 1"},
    {"TopAboveVocabulary", [](auto& r) { r.rows[1].logprobs[2].token = 5; }, "row 1"},
    {"TwoTokensOfOne",
     [](auto& r) {
       r.rows[2] = {.tokens = {0, 1}, .logits = std::vector<float>(2 * kVocab)};
     },
     "row 2 of step 9 with 2 tokens"},
    {"FourTokensOfThree",
     [](auto& r) {
       r.rows[3] = {.tokens = {1, 1, 1, 1},
                    .logprobs = std::vector<step::TokenLogprob>(4, {1, -1.0f, 1}),
                    .logits = std::vector<float>(4 * kVocab)};
     },
     "row 3 of step 9 with 4 tokens"},
    {"SecondTokenAboveVocabulary", [](auto& r) { r.rows[3].tokens[1] = 5; }, "row 3"},
    {"LogprobsOfOneToken", [](auto& r) { r.rows[3].logprobs.pop_back(); }, "row 3"},
    {"SecondLogprobOfAnother", [](auto& r) { r.rows[3].logprobs[1].token = 1; }, "row 3"},
    {"LogitsOfOneToken", [](auto& r) { r.rows[3].logits.resize(kVocab); }, "row 3"},
    {"NothingPooled", [](auto& r) { r.pooled.clear(); },
     "0 values of 2 pooled states of 3 in step 9"},
    {"NoGuess", [](auto& r) { r.guesses.clear(); }, "0 guesses of 1 in step 9"},
    {"MoreGuesses",
     [](auto& r) {
       r.guesses = {1, 2};
     },
     "2 guesses of 1 in step 9"},
    {"GuessAboveVocabulary", [](auto& r) { r.guesses = {5}; },
     "1 guesses of 1 in step 9, one is 5"},
    {"NegativeGuess", [](auto& r) { r.guesses = {-2}; }, "one is -2"},
    {"MorePooled", [](auto& r) { r.pooled.push_back(0); }, "7 values of 2 pooled states"},
    {"RankZero", [](auto& r) { r.rows[0].logprobs[0].rank = 0; }, "row 0"},
    {"RankAboveVocabulary", [](auto& r) { r.rows[1].logprobs[0].rank = 6; }, "row 1"},
};

class ResultCheckRule : public testing::TestWithParam<Case> {};

TEST_P(ResultCheckRule, Refuses) {
  step::StepResult result = Answered();
  GetParam().spoil(result);
  const absl::Status status = CheckResult(Asked(), result, kVocab, kHidden);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(GetParam().message), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("rank 0"), absl::string_view::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(All, ResultCheckRule, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tandem::coordinator
