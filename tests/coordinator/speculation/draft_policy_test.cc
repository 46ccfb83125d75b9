#include "coordinator/speculation/draft_policy.h"

#include <gtest/gtest.h>

namespace tandem::coordinator {
namespace {

constexpr uint32_t kMost = 16;

TEST(DraftPolicyTest, BeginsAfterSomeRightGuesses) {
  DraftPolicy policy;
  EXPECT_EQ(policy.Length(kMost), 0u);
  policy.Judge(1, false);
  EXPECT_EQ(policy.Length(kMost), 0u);
  policy.Judge(2, false);
  EXPECT_EQ(policy.Length(kMost), 2u);
}

TEST(DraftPolicyTest, DraftsMoreTheMoreAreRight) {
  DraftPolicy policy;
  uint32_t length = 0;
  for (int i = 0; i < 12; ++i) {
    policy.Judge(1, false);
    EXPECT_GE(policy.Length(kMost), length);
    length = policy.Length(kMost);
  }
  EXPECT_EQ(length, kMost);
  EXPECT_EQ(policy.Length(3), 3u);
}

TEST(DraftPolicyTest, EndsAfterSomeWrongGuesses) {
  DraftPolicy policy;
  policy.Judge(1000, false);
  for (int i = 0; i < 2; ++i) policy.Judge(0, true);
  EXPECT_GT(policy.Length(kMost), 0u) << "one wrong guess is not the end";
  policy.Judge(0, true);
  EXPECT_EQ(policy.Length(kMost), 0u);
}

TEST(DraftPolicyTest, GuessesThatAreRightHalfTheTimeAreNotWorthIt) {
  DraftPolicy policy;
  uint32_t computed = 0;
  for (int i = 0; i < 100; ++i) {
    policy.Judge(i % 2, i % 2 == 0);
    if (policy.Length(kMost) > 1) ++computed;
  }
  EXPECT_LT(computed, 60u);
}

// Of 64 tokens.
uint32_t NumJudged(const DraftPolicy& policy) {
  uint32_t judged = 0;
  for (size_t position = 100; position < 164; ++position) judged += policy.IsWorthJudging(position);
  return judged;
}

TEST(DraftPolicyTest, WrongGuessesAreJudgedLessAndLessOften) {
  DraftPolicy policy;
  for (const uint32_t judged : {64, 64, 64, 64, 32, 16, 8, 4, 4, 4}) {
    EXPECT_EQ(NumJudged(policy), judged);
    policy.Judge(0, true);
  }
  policy.Judge(1, false);
  EXPECT_EQ(NumJudged(policy), 64u) << "until one is right";
  policy.Judge(3, true);
  EXPECT_EQ(NumJudged(policy), 64u);
}

// With all guesses wrong: how many tokens are drawn before it gives up, at most 1,000.
uint32_t TokensToGivingUp(DraftPolicy& policy) {
  uint32_t position = 0;
  for (; position < 1000 && !policy.has_given_up(); ++position) {
    if (policy.IsWorthJudging(position)) policy.Judge(0, true);
  }
  return position;
}

TEST(DraftPolicyTest, WithoutARecordItNeverGivesUp) {
  DraftPolicy policy;
  EXPECT_EQ(TokensToGivingUp(policy), 1000u);
}

TEST(DraftPolicyTest, GivesUpTheSoonerTheMoreHaveDone) {
  DraftRecord record;
  for (const uint32_t tokens : {161, 33, 33, 33, 33, 33, 33, 9, 9}) {
    DraftPolicy policy(&record);
    EXPECT_EQ(TokensToGivingUp(policy), tokens);
    EXPECT_FALSE(policy.IsWorthJudging(1000));
    policy.Judge(10, false);  // of a step in flight
    EXPECT_EQ(policy.Length(kMost), 0u);
    EXPECT_TRUE(policy.has_given_up());
  }
  DraftPolicy right(&record);
  right.Judge(3, false);
  EXPECT_GT(right.Length(kMost), 0u);
  DraftPolicy next(&record);
  EXPECT_EQ(TokensToGivingUp(next), 161u) << "one that was of use gives the next ones time";
}

TEST(DraftPolicyTest, RightGuessesAreNoReasonToGiveUp) {
  DraftRecord record;
  for (int i = 0; i < 100; ++i) record.NoteUseless();
  DraftPolicy policy(&record);
  for (const bool right : {true, true, false, true, true, false, true, true}) {
    policy.Judge(right, !right);
  }
  EXPECT_GT(policy.Length(kMost), 0u);
}

TEST(DraftPolicyTest, GivesUpOneThatWasOfUseOnce) {
  DraftRecord record;
  DraftPolicy policy(&record);
  for (int i = 0; i < 100; ++i) policy.Judge(i % 2, i % 2 == 0);
  EXPECT_FALSE(policy.has_given_up()) << "right half the time";
  for (int i = 0; i < 100; ++i) policy.Judge(i % 8 == 0, i % 8 != 0);
  EXPECT_TRUE(policy.has_given_up());
}

TEST(DraftPolicyTest, OneThatWasOfUseHasAllTheTime) {
  DraftRecord record;
  DraftPolicy policy(&record);
  policy.Judge(3, false);
  for (int i = 0; i < 100; ++i) record.NoteUseless();
  for (int i = 0; i < 12; ++i) policy.Judge(0, true);
  EXPECT_FALSE(policy.has_given_up());
  for (int i = 0; i < 8; ++i) policy.Judge(0, true);
  EXPECT_TRUE(policy.has_given_up());
}

}  // namespace
}  // namespace tandem::coordinator
