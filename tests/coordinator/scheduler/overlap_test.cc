// Steps that compute tokens which the step before them draws.
#include <gtest/gtest.h>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

TEST(OverlapTest, AStepRefersToTheTokenOfTheOneBefore) {
  Driver driver(Config(4, 16, 5), 16);
  Sequence& a = driver.Add(7);
  EXPECT_EQ(driver.Submit(), "prefill 1+5");
  EXPECT_EQ(driver.Submit(), "prefill 1+2");
  driver.Collect();
  EXPECT_EQ(a.num_pending, 1u);
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  EXPECT_EQ(driver.last().entries[0].begin, 7u);
  EXPECT_TRUE(driver.last().entries[0].samples);
  driver.Collect();
  EXPECT_EQ(a.num_tokens(), 8u);
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  driver.Collect();
  EXPECT_EQ(a.num_tokens(), 10u);
  EXPECT_EQ(a.num_pending, 0u);
  // Nothing is in flight: the token is known.
  EXPECT_EQ(driver.Submit(), "decode 1+1");
  driver.Collect();
}

TEST(OverlapTest, AnEndThatCanBeForeseenIsNotPassed) {
  for (const bool by_model : {false, true}) {
    SchedulerConfig config = Config(4, 16, 16);
    if (by_model) config.max_model_len = 6;
    Driver driver(config, 16);
    Sequence& a = driver.Add(4);
    if (!by_model) a.most_tokens = 6;
    EXPECT_EQ(driver.Submit(), "prefill 1+4");
    EXPECT_EQ(driver.Submit(), "decode 1+1*");
    driver.Collect();
    EXPECT_EQ(driver.Submit(), "");  // its sixth token is the last
    driver.Collect();
    EXPECT_EQ(a.num_tokens(), 6u);
    driver.scheduler().Finish(a);
  }
}

TEST(OverlapTest, ASequenceThatNeedsItsTokensWaitsForThem) {
  Driver driver(Config(4, 16, 16), 16);
  driver.Add(3).needs_known_tokens = true;
  driver.Add(3);
  EXPECT_EQ(driver.Submit(), "prefill 1+3 prefill 2+3");
  EXPECT_EQ(driver.Submit(), "decode 2+1*");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1 decode 2+1*");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 2+1*");
  driver.Collect();
  driver.Collect();
}

TEST(OverlapTest, SequencesThatNeedTheirTokensMeetInOneStep) {
  Driver driver(Config(4, 16, 16), 16);
  driver.Add(3).needs_known_tokens = true;
  EXPECT_EQ(driver.Submit(), "prefill 1+3");
  driver.Add(3).needs_known_tokens = true;
  EXPECT_EQ(driver.Submit(), "prefill 2+3");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "");  // 1 waits for 2
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1 decode 2+1");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1 decode 2+1");
  driver.Collect();
}

// Others that arrive in every step hold it up by one step at a time.
TEST(OverlapTest, ASequenceThatNeedsItsTokensIsNotHeldBackTwice) {
  Driver driver(Config(8, 16, 16), 16);
  driver.Add(3).needs_known_tokens = true;
  EXPECT_EQ(driver.Submit(), "prefill 1+3");
  driver.Add(3).needs_known_tokens = true;
  EXPECT_EQ(driver.Submit(), "prefill 2+3");
  driver.Collect();
  driver.Add(3).needs_known_tokens = true;
  EXPECT_EQ(driver.Submit(), "prefill 3+3");
  driver.Collect();
  driver.Add(3).needs_known_tokens = true;
  EXPECT_EQ(driver.Submit(), "decode 1+1 decode 2+1 prefill 4+3");
  driver.Collect();
  driver.Collect();
}

// The end is known only after the next step was sent. Blocks and slot are freed at once; the token
// that this step computes for the ended sequence is discarded.
TEST(OverlapTest, ASequenceMayEndWhileAStepComputesItsNextToken) {
  Driver driver(Config(1, 16, 16), 4, /*prefix_cache=*/true);
  Sequence& a = driver.Add(3, 500);
  EXPECT_EQ(driver.Submit(), "prefill 1+3");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.kv().Stats().free_blocks, 4);
  Sequence& b = driver.Add(5, 500);
  EXPECT_EQ(driver.Submit(), "prefill 2+5");
  driver.Collect();
  // The block that the last step has filled is not published.
  EXPECT_EQ(driver.kv().Stats().cached_blocks, 0);
  EXPECT_EQ(b.num_cached, 0u);
  EXPECT_EQ(a.num_tokens(), 4u);
  driver.Collect();
  EXPECT_EQ(b.num_tokens(), 6u);
}

// It preempts as without overlap, one step later: no later sequence takes the blocks meanwhile.
TEST(OverlapTest, WhatDoesNotFitWaitsForTheStepsInFlight) {
  Driver driver(Config(4, 64, 64), 4);
  driver.Add(7);
  driver.Add(7);
  driver.Add(1);
  EXPECT_EQ(driver.Submit(), "prefill 1+7 prefill 2+7");
  EXPECT_EQ(driver.Submit(), "decode 1+1* decode 2+1*");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "");  // both need a block more, and there is none
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1 preempted 2");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  driver.Collect();
}

// The oldest fits, a later one does not: the whole step waits, so that none is starved by those
// before it.
TEST(OverlapTest, AStepWaitsAlsoForALaterSequence) {
  Driver driver(Config(4, 64, 64), 4);
  driver.Add(5);
  driver.Add(7);
  EXPECT_EQ(driver.Submit(), "prefill 1+5 prefill 2+7");
  EXPECT_EQ(driver.Submit(), "decode 1+1* decode 2+1*");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1 preempted 2");
  driver.Collect();
}

TEST(OverlapTest, OnlyTheLastStepCanBeReferredTo) {
  Driver driver(Config(4, 16, 16), 16);
  driver.Add(1);
  EXPECT_EQ(driver.Submit(), "prefill 1+1");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");  // two tokens are pending
  for (int i = 0; i < 3; ++i) driver.Collect();

  Driver skipping(Config(4, 16, 16), 16);
  Sequence& a = skipping.Add(1);
  skipping.Add(1);
  EXPECT_EQ(skipping.Submit(), "prefill 1+1 prefill 2+1");
  a.needs_known_tokens = true;
  EXPECT_EQ(skipping.Submit(), "decode 2+1*");
  a.needs_known_tokens = false;
  EXPECT_EQ(skipping.Submit(), "decode 2+1*");  // of the first one, two steps back, nothing is kept
  skipping.Collect();
  EXPECT_EQ(skipping.Submit(), "decode 1+1 decode 2+1*");
  for (int i = 0; i < 3; ++i) skipping.Collect();
}

TEST(OverlapTest, ALossForgetsPendingTokens) {
  Driver driver(Config(4, 16, 16), 16);
  Sequence& a = driver.Add(3);
  EXPECT_EQ(driver.Submit(), "prefill 1+3");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Abandon();
  EXPECT_EQ(a.num_pending, 0u);
  EXPECT_EQ(a.num_tokens(), 4u);
  EXPECT_EQ(driver.Submit(), "prefill 1+4");
  EXPECT_EQ(driver.Submit(), "decode 1+1*");
  driver.Collect();
  driver.Collect();
  EXPECT_EQ(a.num_tokens(), 6u);
}

}  // namespace
}  // namespace tandem::coordinator
