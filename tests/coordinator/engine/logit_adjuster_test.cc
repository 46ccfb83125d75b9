#include "coordinator/engine/logit_adjuster.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "common/step/limits.h"
#include "tests/coordinator/engine/naive_adjustments.h"

namespace tandem::coordinator {
namespace {

using Adjustments = std::vector<step::LogitAdjustment>;
using Tokens = std::vector<TokenId>;

constexpr float kNever = -std::numeric_limits<float>::infinity();

Adjustments Of(const Sampling& sampling, const Tokens& tokens, uint32_t prompt_len) {
  return LogitAdjuster(sampling, prompt_len).Adjust(tokens);
}

TEST(LogitAdjuster, APlainRequestAdjustsNothing) {
  EXPECT_EQ(Of(Sampling{}, {1, 2, 3, 1, 2, 3}, 2), Adjustments{});
}

TEST(LogitAdjuster, FrequencyAndPresenceCountGeneratedTokens) {
  Sampling sampling;
  sampling.penalties.frequency = 0.5f;
  sampling.penalties.presence = 0.25f;
  EXPECT_EQ(Of(sampling, {7, 8, 7, 9, 7}, 2),
            (Adjustments{{.id = 7, .penalty = 1.25f}, {.id = 9, .penalty = 0.75f}}));
}

TEST(LogitAdjuster, RepetitionSeesThePromptToo) {
  Sampling sampling;
  sampling.penalties.repetition = 1.5f;
  EXPECT_EQ(Of(sampling, {7, 8, 7}, 2),
            (Adjustments{{.id = 7, .repetition = 1.5f}, {.id = 8, .repetition = 1.5f}}));
}

TEST(LogitAdjuster, TokensBehindTheWindowAreForgotten) {
  Sampling sampling;
  sampling.penalties.repetition = 2;
  sampling.penalties.frequency = 1;
  sampling.penalties.window = 2;
  EXPECT_EQ(Of(sampling, {1, 2, 3, 3, 4}, 1),
            (Adjustments{{.id = 3, .repetition = 2, .penalty = 1},
                         {.id = 4, .repetition = 2, .penalty = 1}}));
  sampling.penalties.window = 0;
  EXPECT_EQ(Of(sampling, {1, 2, 3, 3, 4}, 1), Adjustments{});
}

TEST(LogitAdjuster, BiasesBansAndPenaltiesOfOneIdAreOneEntry) {
  Sampling sampling;
  sampling.logit_bias = {{3, 5.0f}, {4, -1.0f}};
  sampling.penalties.repetition = 2;
  sampling.penalties.dry_multiplier = 0.5f;
  sampling.penalties.dry_base = 2;
  sampling.penalties.dry_allowed_length = 1;
  sampling.min_tokens = 9;
  sampling.end_ids = {1, 6};
  // 1 2 was followed by 3: one more than allowed.
  EXPECT_EQ(Of(sampling, {1, 2, 3, 1, 2}, 1),
            (Adjustments{{.id = 1, .bias = kNever, .repetition = 2},
                         {.id = 2, .repetition = 2},
                         {.id = 3, .bias = 5, .repetition = 2, .penalty = 1},
                         {.id = 4, .bias = -1},
                         {.id = 6, .bias = kNever}}));
}

TEST(LogitAdjuster, ABannedSequenceEndsBeforeItsLastId) {
  Sampling sampling;
  sampling.banned_sequences = {{5}, {1, 2}, {3, 1, 4}};
  const auto banned = [](std::initializer_list<TokenId> ids) {
    Adjustments list;
    for (const TokenId id : ids) list.push_back({.id = id, .bias = kNever});
    return list;
  };
  EXPECT_EQ(Of(sampling, {1, 1}, 2), banned({5}));  // a prompt begins no word
  EXPECT_EQ(Of(sampling, {3, 1}, 1), banned({2, 5}));
  EXPECT_EQ(Of(sampling, {3, 1}, 0), banned({2, 4, 5}));
  EXPECT_EQ(Of(sampling, {3, 1, 2}, 0), banned({5}));
}

TEST(LogitAdjuster, APenaltyStaysFinite) {
  Sampling sampling;
  sampling.penalties.dry_multiplier = 1;
  sampling.penalties.dry_base = 10;
  EXPECT_EQ(Of(sampling, Tokens(1000, 4), 1), (Adjustments{{.id = 4, .penalty = 1e30f}}));
}

// Whatever the calls before: after each token, after many, or at the end only, as when a sequence
// that was preempted or whose workers were lost is computed again.
TEST(LogitAdjuster, IsAFunctionOfTheTokens) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t bound) { return static_cast<int32_t>(random() % bound); };
  for (int trial = 0; trial < 60; ++trial) {
    Sampling sampling;
    sampling.penalties.frequency = trial % 2 == 0 ? 0.5f : 0.0f;
    sampling.penalties.presence = trial % 3 == 0 ? 0.75f : 0.0f;
    sampling.penalties.repetition = trial % 5 == 0 ? 1.0f : 1.25f;
    sampling.penalties.window = trial % 4 == 0 ? -1 : below(150);
    sampling.penalties.dry_multiplier = trial % 3 == 1 ? 0.8f : 0.0f;
    sampling.penalties.dry_allowed_length = 1 + below(3);
    sampling.penalties.dry_penalty_last_n = trial % 2 == 0 ? -1 : below(100);
    if (trial % 6 == 1) sampling.dry_breakers = {0, 3};
    sampling.logit_bias = {{2, -3.0f}, {50, 1.0f}};
    sampling.banned_sequences = {{1, 1}, {4, 5, 6}, {7}};
    sampling.min_tokens = 20;
    sampling.end_ids = {1, 8};
    const auto prompt_len = static_cast<uint32_t>(1 + below(200));
    const uint32_t vocab = trial % 2 == 0 ? 8 : 300;
    Tokens tokens;
    while (tokens.size() < prompt_len) tokens.push_back(below(vocab));
    LogitAdjuster each(sampling, prompt_len), some(sampling, prompt_len);
    for (int i = 0; i < 150; ++i) {
      const Adjustments expected = NaiveAdjustments(sampling, tokens, prompt_len);
      ASSERT_EQ(each.Adjust(tokens), expected) << "trial " << trial << " token " << i;
      if (i % 70 == 0) {
        ASSERT_EQ(some.Adjust(tokens), expected) << "trial " << trial << " token " << i;
      }
      tokens.push_back(below(vocab));
    }
    ASSERT_EQ(Of(sampling, tokens, prompt_len), each.Adjust(tokens));
  }
}

TEST(LogitAdjuster, ARowHasNoMoreAdjustmentsThanAStepTakes) {
  Sampling sampling;
  sampling.penalties.repetition = 2;
  sampling.penalties.dry_multiplier = 1;
  sampling.penalties.dry_allowed_length = 1;
  sampling.min_tokens = 9;
  TokenId id = 20000;
  for (uint32_t i = 0; i < step::kMaxLogitBiases; ++i) sampling.logit_bias.push_back({id++, 1.0f});
  for (uint32_t i = 0; i < step::kMaxEndIds; ++i) sampling.end_ids.push_back(id++);
  for (uint32_t i = 0; i < step::kMaxBannedSequences; ++i) {
    sampling.banned_sequences.push_back({id++});
  }
  Tokens tokens;
  for (TokenId token = 0; token < 20000; ++token) tokens.push_back(token);
  EXPECT_EQ(Of(sampling, tokens, 20000).size(), step::kMaxRowAdjustments);
}

}  // namespace
}  // namespace tandem::coordinator
