// Equal prefixes that arrive together: one sequence computes them, the others wait for it. Blocks
// have 4 tokens.
#include "coordinator/scheduler/promised_prefixes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

constexpr bool kCache = true;

TEST(PromisedPrefixesTest, TheFirstComputesWhatTheOthersWaitFor) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  for (int i = 0; i < 3; ++i) AddSharing(driver, 14, 3);
  EXPECT_EQ(driver.Step(), "prefill 1+17");
  EXPECT_EQ(driver.scheduler().num_waiting(), 2u);
  // 12 of the shared tokens fill blocks.
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+5 prefill 3+5");
  EXPECT_EQ(driver.scheduler().Stats().cached_tokens, 24);
}

TEST(PromisedPrefixesTest, EqualPromptsComputeTheirLastBlock) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  for (int i = 0; i < 4; ++i) AddSharing(driver, 16, 0);
  EXPECT_EQ(driver.Step(), "prefill 1+16");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+4 prefill 3+4 prefill 4+4");
}

TEST(PromisedPrefixesTest, AFollowerBeginsWhenTheCommonPartIsThere) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 16, 24);
  AddSharing(driver, 16, 3);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+8 prefill 2+3");
}

TEST(PromisedPrefixesTest, WhatComesLaterFollowsToo) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 24, 24);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  AddSharing(driver, 24, 3);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+8 prefill 2+3");
}

TEST(PromisedPrefixesTest, AStepInFlightHasPublishedNothing) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Submit(), "prefill 1+18");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1* prefill 2+2");
  driver.Collect();
  driver.Collect();
}

TEST(PromisedPrefixesTest, OthersGoPastThoseThatWait) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  for (int i = 0; i < 20; ++i) AddSharing(driver, 16, 2);
  driver.Add(9);
  EXPECT_EQ(driver.Step(), "prefill 1+18 prefill 21+9");
}

TEST(PromisedPrefixesTest, ManyAreComparedInSeveralSteps) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  for (int i = 0; i < 71; ++i) AddSharing(driver, 16, 2);
  driver.Add(9);
  EXPECT_EQ(driver.Submit(), "prefill 1+18");
  EXPECT_EQ(driver.Submit(), "decode 1+1* prefill 72+9");
  EXPECT_EQ(driver.scheduler().num_waiting(), 70u);
  driver.Collect();
  driver.Collect();
}

TEST(PromisedPrefixesTest, AFollowerOfTheEndedLeaderIsTheNextOne) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  Sequence& leader = AddSharing(driver, 24, 2);
  AddSharing(driver, 24, 2);
  AddSharing(driver, 24, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  driver.scheduler().Finish(leader);
  EXPECT_EQ(driver.Step(), "prefill 2+8");
  EXPECT_EQ(driver.Step(), "prefill 2+8");
  EXPECT_EQ(driver.Step(), "prefill 2+2 prefill 3+2");
}

TEST(PromisedPrefixesTest, AFollowerMayEndToo) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 16, 2);
  Sequence& follower = AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  driver.scheduler().Finish(follower);
  EXPECT_EQ(driver.scheduler().num_waiting(), 1u);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+2 prefill 3+2");
}

TEST(PromisedPrefixesTest, LostWorkersBreakThePromise) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  driver.Lose();
  EXPECT_EQ(driver.scheduler().num_waiting(), 2u);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+2 prefill 2+2");
}

TEST(PromisedPrefixesTest, WithoutAPrefixCacheNobodyWaits) {
  Driver driver(Passing(8, 256, 256), 64);
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+18 prefill 2+18");
}

TEST(PromisedPrefixesTest, OtherSaltsShareNothing) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2).prefix_hashes.salt = "b";
  AddSharing(driver, 16, 2).prefix_hashes.salt = "b";
  EXPECT_EQ(driver.Step(), "prefill 1+18 prefill 2+18");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+2");
}

TEST(PromisedPrefixesTest, AResetCacheIsNotWaitedFor) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  driver.kv().ResetPrefixCache();
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+8 prefill 2+8");
}

TEST(PromisedPrefixesTest, AScoredPromptNeitherWaitsNorIsWaitedFor) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2).scored_from = 0;
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2).scored_from = 0;
  EXPECT_EQ(driver.Step(), "prefill 1+18 prefill 2+18 prefill 3+18");
}

TEST(PromisedPrefixesTest, WhatIsNotSharedIsNotWaitedFor) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2).unshared_from = 0;
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+18 prefill 2+18");
  Driver in_part(Passing(8, 256, 256), 64, kCache);
  AddSharing(in_part, 16, 2).unshared_from = 14;
  AddSharing(in_part, 16, 2);
  EXPECT_EQ(in_part.Step(), "prefill 1+18");
  EXPECT_EQ(in_part.Step(), "decode 1+1 prefill 2+6");
  EXPECT_EQ(in_part.scheduler().Stats().cached_tokens, 12);
}

// Many continuations of one context.
TEST(PromisedPrefixesTest, TheContextOfScoredTokensIsComputedOnce) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  for (int i = 0; i < 3; ++i) AddSharing(driver, 20, 3).scored_from = 19;
  EXPECT_EQ(driver.Step(), "prefill 1+23");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+7 prefill 3+7");
}

TEST(PromisedPrefixesTest, BehindAWindowToo) {
  Driver driver(Passing(8, 256, 8),
                std::vector<KvGroup>{{.num_blocks = 64}, {.num_blocks = 16, .window_tokens = 6}},
                kCache);
  for (int i = 0; i < 3; ++i) AddSharing(driver, 32, 3);
  for (int step = 0; step < 4; ++step) EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+3 prefill 2+3 prefill 3+3");
}

}  // namespace
}  // namespace tandem::coordinator
