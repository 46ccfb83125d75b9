#include "coordinator/engine/apply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

Generation Of(Tokens prompt, Sampling sampling, std::vector<std::vector<float>>* sink = nullptr) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = std::move(sampling);
  request.want_logits = sink != nullptr;
  request.logits_sink = sink;
  return Generation(7, std::move(request));
}

constexpr uint32_t kMaxModelLen = 100;

TEST(ApplyRowsTest, SeveralTokensOfOneRowEachWithTheirs) {
  std::vector<std::vector<float>> logits;
  Generation generation =
      Of({1, 2}, {.max_tokens = 9, .end_ids = {}, .stop = {}, .logprobs = 1}, &logits);
  const std::vector<step::RowRequest> rows = {{.token = 1,
                                               .wants = step::kWantSample | step::kWantLogits |
                                                        step::kWantSampleLogprob |
                                                        step::kWantTopLogprobs,
                                               .max_tokens = 3,
                                               .top_n = 1}};
  const std::vector<step::RowResult> results = {
      {.tokens = {5, 6},
       .logprobs = {{5, -1.0f, 2}, {8, -0.5f, 1}, {6, -0.1f, 1}, {6, -0.1f, 1}},
       .logits = {1, 2, 3, 4}}};
  const StreamUpdate update = ApplyRows(rows, results, kMaxModelLen, generation);
  EXPECT_EQ(update.tokens, (Tokens{5, 6}));
  EXPECT_EQ(update.reason, FinishReason::kNone);
  EXPECT_EQ(update.logprobs[0].token.token, 5);
  EXPECT_EQ(update.logprobs[0].top[0].token, 8);
  EXPECT_EQ(update.logprobs[1].token.token, 6);
  EXPECT_EQ(logits, (std::vector<std::vector<float>>{{1, 2}, {3, 4}}));
  EXPECT_EQ(generation.tokens, (Tokens{1, 2, 5, 6}));
}

TEST(ApplyRowsTest, TokensBehindTheEndAreDropped) {
  const std::vector<step::RowRequest> rows = {{.token = 0, .max_tokens = 4}};
  const std::vector<step::RowResult> results = {
      {.tokens = {5, 6, 7, 8}, .logprobs = {}, .logits = {}}};
  Generation stops = Of({1}, {.max_tokens = 9, .end_ids = {6}, .stop = {}});
  const StreamUpdate stopped = ApplyRows(rows, results, kMaxModelLen, stops);
  EXPECT_EQ(stopped.tokens, (Tokens{5, 6}));
  EXPECT_EQ(stopped.reason, FinishReason::kStop);
  EXPECT_EQ(stops.tokens, (Tokens{1, 5, 6}));

  Generation fills = Of({1}, {.max_tokens = 3, .end_ids = {}, .stop = {}});
  const StreamUpdate filled = ApplyRows(rows, results, kMaxModelLen, fills);
  EXPECT_EQ(filled.tokens, (Tokens{5, 6, 7}));
  EXPECT_EQ(filled.reason, FinishReason::kLength);
}

TEST(ApplyRowsTest, ScoredPromptTokensComeBesideTheFirstSample) {
  Generation generation =
      Of({1, 2}, {.max_tokens = 9, .end_ids = {}, .stop = {}, .prompt_logprobs = 1});
  const std::vector<step::RowRequest> rows = {
      {.token = 0, .wants = step::kWantLogprobsOf, .logprobs_of = {2}}, {.token = 1}};
  const std::vector<step::RowResult> results = {
      {.tokens = {}, .logprobs = {{2, -3.0f, 4}, {9, -0.5f, 1}}, .logits = {}},
      {.tokens = {5}, .logprobs = {}, .logits = {}}};
  const StreamUpdate update = ApplyRows(rows, results, kMaxModelLen, generation);
  ASSERT_EQ(update.prompt_logprobs.size(), 1u);
  EXPECT_EQ(update.prompt_logprobs[0].token.token, 2);
  EXPECT_EQ(update.prompt_logprobs[0].top[0].token, 9);
  EXPECT_EQ(generation.next_scored, 1u);
  EXPECT_EQ(update.tokens, Tokens{5});
}

TEST(ApplyRowsTest, AScoredRowThatIsNotFiniteEndsTheRequest) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float likeliest : {nan, -infinity, infinity}) {
    Request request;
    request.prompt = {1, 2};
    request.targets = {2, 3};
    request.sampling.prompt_logprobs = 1;
    Generation generation(1, std::move(request));
    generation.num_computed = 2;
    const std::vector<step::RowRequest> rows(
        2, {.token = 0, .wants = step::kWantLogprobsOf, .logprobs_of = {2}});
    const std::vector<step::RowResult> results = {
        {.tokens = {}, .logprobs = {{2, -infinity, 4}, {9, -0.5f, 1}}, .logits = {}},
        {.tokens = {}, .logprobs = {{3, nan, 1}, {9, likeliest, 1}}, .logits = {}}};
    const StreamUpdate update = ApplyRows(rows, results, kMaxModelLen, generation);
    EXPECT_EQ(update.prompt_logprobs.size(), 1u) << "an id that is impossible is no error";
    EXPECT_EQ(update.status.code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(update.status.message().find("not finite at position 1"), absl::string_view::npos)
        << update.status;
  }
}

// Of tokens 4 5 6 7, the last three of which are drafts, what is drawn after each.
uint32_t Accepted(const Tokens& drawn, const Tokens& end_ids) {
  step::StepDescriptor step;
  step.tokens = {1, 4, 5, 6, 7};
  std::vector<step::RowRequest> rows;
  std::vector<step::RowResult> results;
  for (uint32_t i = 0; i < 4; ++i) {
    rows.push_back({.token = 1 + i, .wants = step::kWantSample});
    results.push_back({.tokens = {drawn[i]}});
  }
  return NumAccepted(step, rows, results, Of({1}, {.end_ids = end_ids, .stop = {}}));
}

TEST(NumAcceptedTest, UpToTheFirstThatIsNotDrawn) {
  EXPECT_EQ(Accepted({5, 6, 7, 8}, {}), 3u);
  EXPECT_EQ(Accepted({5, 6, 8, 8}, {}), 2u);
  EXPECT_EQ(Accepted({5, 8, 7, 8}, {}), 1u);
  EXPECT_EQ(Accepted({8, 6, 7, 8}, {}), 0u);
}

// The row that draws it is the last one of the answer, and none is a draft's that was accepted.
TEST(NumAcceptedTest, UpToAnIdThatEndsIt) {
  EXPECT_EQ(Accepted({5, 6, 7, 8}, {8}), 3u);
  EXPECT_EQ(Accepted({5, 6, 7, 8}, {7}), 2u);
  EXPECT_EQ(Accepted({5, 6, 7, 8}, {5, 6}), 0u);
  EXPECT_EQ(Accepted({5, 8, 7, 8}, {8}), 1u);
}

TEST(NumAcceptedTest, AGuessThatIsNotFiniteIsNone) {
  step::StepDescriptor step;
  step.tokens = {4, step::kNotFinite};
  const std::vector<step::RowRequest> rows = {{.token = 0}, {.token = 1}};
  const std::vector<step::RowResult> results = {{.tokens = {step::kNotFinite}}, {.tokens = {3}}};
  EXPECT_EQ(NumAccepted(step, rows, results, Of({1}, {})), 0u);
}

}  // namespace
}  // namespace tandem::coordinator
