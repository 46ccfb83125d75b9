// Which steps have drafts, whose they are, and what becomes of them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

SchedulerConfig Drafting(uint32_t seqs, uint32_t budget = 64) {
  SchedulerConfig config = Config(seqs, budget, budget);
  config.max_draft_rows = 8;
  return config;
}

Sequence& AddWithDrafts(Driver& driver, uint32_t prompt_len, std::vector<TokenId> drafts) {
  Sequence& sequence = driver.Add(prompt_len);
  sequence.drafts = std::move(drafts);
  return sequence;
}

TEST(DraftsTest, TheRowsAreShared) {
  Driver driver(Drafting(4), 64);
  AddWithDrafts(driver, 5, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(driver.Step(), "prefill 1+5");
  EXPECT_EQ(driver.Submit(), "decode 1+1+6");
  driver.Collect();
  AddWithDrafts(driver, 5, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+5");
  EXPECT_EQ(driver.Submit(), "decode 1+1+3 decode 2+1+3");
  driver.Collect();
}

TEST(DraftsTest, NoneWithLessThanADraftForEach) {
  Driver driver(Drafting(8), 64);
  for (int i = 0; i < 5; ++i) AddWithDrafts(driver, 2, {1, 2, 3});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1 decode 2+1 decode 3+1 decode 4+1 decode 5+1");
  driver.Collect();
}

// may_draft: drafters guess, and their guesses are compared, only while steps may have drafts.
TEST(DraftsTest, APlanSaysWhetherStepsMayHaveThem) {
  Driver driver(Drafting(8), 64);
  std::vector<Sequence*> sequences;
  for (int i = 0; i < 4; ++i) sequences.push_back(&driver.Add(2));
  driver.Step();
  EXPECT_TRUE(driver.last().may_draft);
  sequences.push_back(&driver.Add(2));
  driver.Step();
  EXPECT_FALSE(driver.last().may_draft) << "a fifth one was admitted";
  driver.scheduler().Finish(*sequences[2]);
  driver.Step();
  EXPECT_TRUE(driver.last().may_draft);

  Driver without(Config(8, 64, 64), 64);
  without.Add(2);
  without.Step();
  EXPECT_FALSE(without.last().may_draft);

  SchedulerConfig one_token = Drafting(8);
  one_token.chunked_prefill_size = 1;
  Driver tiny(one_token, 64);
  tiny.Add(2);
  tiny.Step();
  EXPECT_FALSE(tiny.last().may_draft);

  SchedulerConfig strict = Drafting(8);
  strict.max_strikes = 1;
  Driver isolating(strict, 64);
  isolating.Add(2);
  isolating.Lose();
  isolating.Submit();
  EXPECT_FALSE(isolating.last().may_draft) << "it runs as a suspect";
  isolating.Collect();
}

TEST(DraftsTest, OneSequenceAtATimeHasAsManyRows) {
  Driver driver(Drafting(1), 64);
  AddWithDrafts(driver, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+7");
  driver.Collect();
}

TEST(DraftsTest, NoMoreRowsThanAStepHasTokens) {
  Driver driver(Drafting(1, /*budget=*/5), 64);
  AddWithDrafts(driver, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+4");
  driver.Collect();
}

TEST(DraftsTest, AStepWithSomeWaitsForTheOneBeforeAndTheNextForIt) {
  Driver driver(Drafting(4), 64);
  Sequence& a = driver.Add(5);
  EXPECT_EQ(driver.Submit(), "prefill 1+5");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  a.drafts = {1, 2, 3};
  EXPECT_EQ(driver.Submit(), "");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1+3");
  EXPECT_EQ(driver.Submit(), "");
  driver.Add(2);  // what arrives does not wait
  EXPECT_EQ(driver.Submit(), "prefill 2+2");
  driver.Collect(2);
  EXPECT_EQ(a.num_tokens(), 10u);
  EXPECT_EQ(a.num_computed, 9u);
  driver.Collect();
}

TEST(DraftsTest, NoneBehindTheLastToken) {
  Driver driver(Drafting(4), 64);
  Sequence& a = AddWithDrafts(driver, 5, {1, 2, 3});
  a.most_tokens = 8;
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+1");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1");  // its token is the last one
  driver.Collect();
}

TEST(DraftsTest, WhatWaitsForASlotDoesNotForbidThem) {
  Driver driver(Drafting(1), 64);
  AddWithDrafts(driver, 5, {1, 2, 3});
  driver.Add(5);
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+3");
  driver.Collect();
}

TEST(DraftsTest, WhatWaitsForBlocksForbidsThem) {
  Driver driver(Drafting(4), 20);
  AddWithDrafts(driver, 5, {1, 2, 3});
  driver.Step();
  driver.Add(76);
  EXPECT_EQ(driver.Submit(), "decode 1+1");
  driver.Collect();
}

TEST(DraftsTest, OnlyWhatIsJudgedIsCounted) {
  Driver driver(Drafting(4), 64);
  Sequence& a = AddWithDrafts(driver, 5, {1, 2, 3});
  driver.Step();
  driver.Submit();
  driver.Collect(2);
  EXPECT_EQ(a.num_drafted, 3u);
  EXPECT_EQ(a.num_accepted, 2u);
  driver.Submit();
  driver.scheduler().Finish(a);
  driver.Collect();
  EXPECT_EQ(driver.scheduler().Stats().drafts, 3);
  EXPECT_EQ(driver.scheduler().Stats().accepted_drafts, 2);
}

// The last token's row, after accepted drafts, may have been found not to be finite.
TEST(DraftsTest, WhatTheLastRowReadsIsNotPublishedWhenItEnds) {
  Driver driver(Drafting(4), 64, /*prefix_cache=*/true);
  Sequence& a = AddWithDrafts(driver, 5, {1, 2});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+2");
  driver.Collect(2);
  ASSERT_EQ(a.num_computed, 8u);
  a.tokens.resize(8);
  driver.scheduler().Finish(a);
  PrefixHashes hashes;
  std::vector<TokenId> prompt = a.tokens;
  prompt.push_back(7);
  EXPECT_EQ(driver.kv().Match(prompt, hashes).num_tokens, 4u);
}

TEST(DraftsTest, NorWhatIsNotForOthers) {
  Driver driver(Drafting(4), 64, /*prefix_cache=*/true);
  Sequence& a = AddWithDrafts(driver, 5, {1, 2, 3, 4, 5, 6, 7});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+7");
  driver.Collect(7);
  ASSERT_EQ(a.num_tokens(), 14u);
  a.drafts.clear();
  a.unshared_from = 10;
  EXPECT_EQ(driver.Step(), "decode 1+1");
  const std::vector<TokenId> prompt = a.tokens;
  driver.scheduler().Finish(a);
  PrefixHashes hashes;
  EXPECT_EQ(driver.kv().Match(prompt, hashes).num_tokens, 8u) << "of 12 in full blocks";
}

// By a step that runs the guesser, such as one with another sequence's prompt.
TEST(DraftsTest, WhatIsComputedAgainMayBeForOthers) {
  Driver driver(Drafting(4), 64, /*prefix_cache=*/true);
  Sequence& a = driver.Add(5);
  for (int i = 0; i < 9; ++i) driver.Step();
  a.unshared_from = 5;
  driver.Step();
  driver.Lose(/*blame=*/false);
  driver.Step();
  ASSERT_EQ(a.num_computed, 15u);
  PrefixHashes hashes;
  EXPECT_EQ(driver.kv().Match(a.tokens, hashes).num_tokens, 12u);
}

KvCacheConfig Recurrent(uint32_t num_snapshots, uint32_t interval) {
  return {.block_size = kBlockSize,
          .groups = {{.num_blocks = 64}},
          .snapshots = SnapshotConfig{.num_snapshots = num_snapshots, .interval = interval}};
}

TEST(DraftsTest, ARecurrentStateGoesBackToBeforeWrongOnes) {
  Driver driver(Drafting(4), Recurrent(2, 64));
  Sequence& a = AddWithDrafts(driver, 5, {1, 2, 3, 4});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+4");
  const PlanEntry first = driver.last().entries[0];
  EXPECT_EQ(first.load_snapshot, kv::kNoSnapshot);
  EXPECT_NE(first.save_snapshot, kv::kNoSnapshot);
  EXPECT_EQ(first.save_after, 1u);
  driver.Collect(2);
  EXPECT_EQ(a.num_tokens(), 9u);
  EXPECT_EQ(a.num_computed, 6u) << "the two accepted ones are computed again";
  EXPECT_EQ(driver.Submit(), "decode 1+3+4");
  const PlanEntry second = driver.last().entries[0];
  EXPECT_EQ(second.load_snapshot, first.save_snapshot);
  EXPECT_NE(second.save_snapshot, first.save_snapshot);
  EXPECT_EQ(second.save_after, 3u);
  driver.Collect(4);
  EXPECT_EQ(a.num_computed, 13u);
  EXPECT_EQ(driver.Submit(), "decode 1+1+4");
  EXPECT_EQ(driver.last().entries[0].load_snapshot, kv::kNoSnapshot) << "all were right";
  driver.Collect(0);
  a.drafts.clear();
  EXPECT_EQ(driver.Submit(), "decode 1+1");
  EXPECT_NE(driver.last().entries[0].load_snapshot, kv::kNoSnapshot);
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  EXPECT_EQ(driver.last().entries[0].load_snapshot, kv::kNoSnapshot) << "it is loaded once";
  driver.Collect();
  driver.Collect();
}

TEST(DraftsTest, WhatIsComputedAgainTakesRows) {
  Driver driver(Drafting(4), Recurrent(8, 64));
  AddWithDrafts(driver, 5, {1, 2, 3, 4, 5, 6, 7});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+7");
  driver.Collect(5);
  EXPECT_EQ(driver.Submit(), "decode 1+6+2");
  driver.Collect(1);
  EXPECT_EQ(driver.Submit(), "decode 1+2+6");
  driver.Collect();
}

TEST(DraftsTest, NothingIsComputedAgainAfterAPreemption) {
  Driver driver(Drafting(4), Recurrent(8, 64));
  Sequence& a = AddWithDrafts(driver, 5, {1, 2, 3, 4});
  driver.Step();
  driver.Submit();
  driver.Collect(2);
  driver.Lose();
  EXPECT_EQ(driver.Submit(), "prefill 1+9");
  EXPECT_EQ(driver.last().entries[0].load_snapshot, kv::kNoSnapshot);
  driver.Collect();
  EXPECT_EQ(a.num_computed, 9u);
}

TEST(DraftsTest, NoneBehindAPointWhoseStateIsKept) {
  KvCacheConfig cache = Recurrent(8, 8);
  cache.enable_prefix_cache = true;
  Driver driver(Drafting(4), cache);
  Sequence& a = AddWithDrafts(driver, 5, {1, 2, 3, 4});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+1");
  driver.Collect(1);
  ASSERT_EQ(a.num_computed, 7u);
  EXPECT_EQ(driver.Submit(), "decode 1+1");
  EXPECT_EQ(driver.last().entries[0].save_after, 1u);
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1+4");
  driver.Collect();
}

TEST(DraftsTest, WhoHasNoSnapshotWaitsForThoseWhoHave) {
  Driver driver(Drafting(4), Recurrent(1, 64));
  AddWithDrafts(driver, 5, {1, 2, 3});
  AddWithDrafts(driver, 5, {1, 2, 3});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+3 decode 2+1");
  EXPECT_EQ(driver.Submit(), "") << "the step with drafts has not settled";
  driver.Collect(3);
}

// A step that could have none does not wait for the one before.
TEST(DraftsTest, AtAPointStepsOverlap) {
  KvCacheConfig cache = Recurrent(8, 8);
  cache.enable_prefix_cache = true;
  Driver driver(Drafting(4), cache);
  Sequence& a = driver.Add(6);
  EXPECT_EQ(driver.Submit(), "prefill 1+6");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1");
  a.drafts = {1, 2, 3, 4};
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  driver.Collect();
}

TEST(DraftsTest, NoneWithoutASnapshotToGoBackBy) {
  Driver driver(Drafting(4), Recurrent(1, 64));
  AddWithDrafts(driver, 5, {1, 2, 3, 4});
  driver.Step();
  EXPECT_EQ(driver.Submit(), "decode 1+1+4");
  driver.Collect(1);
  EXPECT_EQ(driver.Submit(), "decode 1+2") << "the only one is being loaded";
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1+4");
  driver.Collect();
}

}  // namespace
}  // namespace tandem::coordinator
