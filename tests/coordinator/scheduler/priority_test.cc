// Whom the scheduler serves first, whom it preempts, and whom it lets pass.
#include <gtest/gtest.h>

#include <string>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

// A second of waiting is worth one priority.
constexpr int64_t kAgeing = 1000000;

Sequence& AddAt(Driver& driver, int64_t arrival_us, int32_t priority, uint32_t prompt_len,
                TokenId first = -1) {
  return driver.Add(prompt_len, first,
                    {.priority = priority, .virtual_arrival_us = arrival_us + priority * kAgeing});
}

SchedulerConfig Skipping(SchedulerConfig config, uint32_t max_queue_skips) {
  config.max_queue_skips = max_queue_skips;
  return config;
}

TEST(PriorityTest, ALowerNumberGoesFirst) {
  Driver driver(Config(1, 64, 64), 64);
  Sequence& a = AddAt(driver, 0, 0, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+2");
  AddAt(driver, 1, 3, 2);
  AddAt(driver, 2, -1, 2);
  Sequence& d = AddAt(driver, 3, -2, 2);
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 4+2");
  driver.scheduler().Finish(d);
  EXPECT_EQ(driver.Step(), "prefill 3+2");
}

TEST(PriorityTest, EqualOnesAreServedInTheOrderOfTheirArrival) {
  Driver driver(Config(2, 64, 64), 64);
  for (int i = 0; i < 4; ++i) AddAt(driver, 0, 5, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+2 prefill 2+2");
}

TEST(PriorityTest, WhatHasWaitedLongEnoughGoesBeforeALowerNumber) {
  Driver driver(Config(1, 64, 64), 64);
  Sequence& a = AddAt(driver, 0, 0, 2);
  driver.Step();
  Sequence& old = AddAt(driver, 1, 2, 2);
  AddAt(driver, 2 * kAgeing - 1, 0, 2);  // before it by a moment
  AddAt(driver, 2 * kAgeing + 2, 0, 2);
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 3+2");
  driver.scheduler().Finish(*driver.last().entries[0].sequence);
  EXPECT_EQ(driver.Step(), "prefill 2+2");
  driver.scheduler().Finish(old);
  EXPECT_EQ(driver.Step(), "prefill 4+2");
}

TEST(PriorityTest, ThePrefillOfALowerNumberGetsTheTokens) {
  Driver driver(Config(2, 8, 8), 64);
  AddAt(driver, 0, 0, 20);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  AddAt(driver, 1, 0, 20);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+4 prefill 2+4");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+7");
  Driver urgent(Config(2, 8, 8), 64);
  AddAt(urgent, 0, 0, 20);
  EXPECT_EQ(urgent.Step(), "prefill 1+8");
  EXPECT_EQ(urgent.Step(), "prefill 1+8");
  AddAt(urgent, 1, -1, 20);
  // What runs keeps its share of this step; the next ones are the other's.
  EXPECT_EQ(urgent.Step(), "prefill 2+4 prefill 1+4");
  EXPECT_EQ(urgent.Step(), "decode 1+1 prefill 2+7");
}

// Where prefill goes first, priorities say which one, and whose token is left out.
TEST(PriorityTest, HoldsAmongPrefillsThatGoBeforeDecodes) {
  Driver driver(Config(4, 6, 6, SchedulingPolicy::kPrefillFirst), 64);
  AddAt(driver, 0, 3, 2);
  AddAt(driver, 1, 0, 2);
  EXPECT_EQ(driver.Step(), "prefill 2+2 prefill 1+2");
  AddAt(driver, 2, 2, 9);
  AddAt(driver, 3, -1, 5);
  EXPECT_EQ(driver.Step(), "prefill 4+5 prefill 3+1");
  EXPECT_EQ(driver.Step(), "prefill 3+6");
  EXPECT_EQ(driver.Step(), "decode 4+1 decode 2+1 decode 1+1 prefill 3+2");
}

TEST(PriorityTest, DecodesThatWaitForPrefillHaveTheirOrder) {
  Driver driver(Config(4, 5, 5, SchedulingPolicy::kPrefillFirst), 64);
  AddAt(driver, 0, 3, 1);
  AddAt(driver, 1, 0, 1);
  AddAt(driver, 2, -1, 1);
  EXPECT_EQ(driver.Step(), "prefill 3+1 prefill 2+1 prefill 1+1");
  AddAt(driver, 3, 5, 4);
  EXPECT_EQ(driver.Step(), "decode 3+1 prefill 4+4");
}

TEST(PriorityTest, TheHighestNumberIsPreempted) {
  // 6 blocks of 4: three sequences of 7 tokens fill them.
  Driver driver(Config(4, 64, 64), 6);
  AddAt(driver, 0, 0, 7);
  Sequence& b = AddAt(driver, 1, 4, 7);
  AddAt(driver, 2, 0, 7);
  EXPECT_EQ(driver.Step(), "prefill 1+7 prefill 3+7 prefill 2+7");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 3+1 decode 2+1");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 3+1 preempted 2");
  EXPECT_TRUE(b.blocks.empty());
}

TEST(PriorityTest, OfEqualOnesTheOneWithTheLeastToComputeAgainIsPreempted) {
  // The last has computed the most: the one in the middle goes, whose tokens were given before.
  Driver driver(Config(4, 64, 64), 8);
  AddAt(driver, 0, 0, 7);
  AddAt(driver, 1, 0, 6);
  AddAt(driver, 2, 0, 15);
  EXPECT_EQ(driver.Step(), "prefill 1+7 prefill 2+6 prefill 3+15");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 decode 3+1");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 3+1 preempted 2");
  EXPECT_EQ(driver.last().num_tokens, 2u);
}

TEST(PriorityTest, TokensThatOthersHoldTooAreNoLoss) {
  // 2 and 3 share three blocks with each other: little of them is lost, unlike of 4.
  Driver driver(Config(4, 64, 64), 9, /*prefix_cache=*/true);
  AddAt(driver, 0, 0, 3);
  Sequence& b = AddAt(driver, 1, 0, 13, 500);
  EXPECT_EQ(driver.Step(), "prefill 1+3 prefill 2+13");
  Sequence& c = AddAt(driver, 2, 0, 14, 500);
  AddAt(driver, 3, 0, 8);
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+2 prefill 4+8");
  EXPECT_EQ(driver.kv().SharedTokens(b.blocks), 12u);
  EXPECT_EQ(driver.kv().SharedTokens(c.blocks), 12u);
  // Of its 14 tokens 2 are lost, of the second's 14 as many, of the fourth's 8 all.
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 decode 4+1 preempted 3");
}

TEST(PriorityTest, TheFirstIsNeverPreemptedWhateverItsNumber) {
  Driver driver(Config(4, 64, 64), 4);
  // It has waited for long.
  AddAt(driver, -20 * kAgeing, 9, 7);
  AddAt(driver, 0, 0, 7);
  EXPECT_EQ(driver.Step(), "prefill 1+7 prefill 2+7");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1");
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
}

TEST(SkippingTest, WhatFitsGoesPastAHeadThatDoesNot) {
  Driver driver(Skipping(Config(4, 64, 64), 8), 6);
  Sequence& a = driver.Add(15);
  EXPECT_EQ(driver.Step(), "prefill 1+15");
  driver.Add(14);
  driver.Add(3);
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 3+3");
  EXPECT_EQ(driver.scheduler().num_waiting(), 1u);
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "decode 3+1 prefill 2+14");
}

TEST(SkippingTest, AHeadIsSkippedABoundedNumberOfTimes) {
  Driver driver(Skipping(Config(8, 64, 64), 2), 6);
  Sequence& a = driver.Add(15);
  driver.Step();
  Sequence& head = driver.Add(14);
  std::vector<Sequence*> small;
  for (int i = 0; i < 5; ++i) small.push_back(&driver.Add(1));
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 3+1 prefill 4+1");
  EXPECT_EQ(head.num_skips, 2u);
  driver.scheduler().Finish(*small[0]);
  EXPECT_EQ(driver.Step().find("prefill"), std::string::npos);  // there is room, and the head first
  driver.scheduler().Finish(*small[1]);
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+14 prefill 5+1 prefill 6+1");
}

TEST(SkippingTest, NobodyGoesPastWhatWasPreempted) {
  Driver driver(Skipping(Config(4, 64, 64), 8), 4);
  Sequence& a = driver.Add(7);
  driver.Add(7);
  driver.Step();
  driver.Step();
  driver.Add(2);
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
  EXPECT_EQ(driver.Step(), "decode 1+1");
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+9 prefill 3+2");
}

TEST(SkippingTest, AStepLooksPastABoundedNumberOfThem) {
  Driver driver(Skipping(Config(4, 64, 64), 8), 6);
  driver.Add(15);
  driver.Step();
  for (int i = 0; i < 9; ++i) driver.Add(14);
  driver.Add(1);
  EXPECT_EQ(driver.Step(), "decode 1+1");
}

}  // namespace
}  // namespace tandem::coordinator
