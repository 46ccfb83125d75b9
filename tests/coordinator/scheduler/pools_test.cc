// Prompts whose states are pooled: how many a step may have.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

SchedulerConfig WithPools(uint32_t max_pools, uint32_t chunk) {
  SchedulerConfig config = Config(8, 64, chunk);
  config.max_pools = max_pools;
  return config;
}

// The states from `from` on are pooled.
Sequence& AddPooled(Driver& driver, uint32_t prompt_len, uint32_t from) {
  Sequence& sequence = driver.Add(prompt_len);
  sequence.generates = false;
  sequence.pooled_from = from;
  sequence.pooled_end = prompt_len;
  return sequence;
}

uint32_t NumPools(const Plan& plan) {
  return static_cast<uint32_t>(std::ranges::count_if(plan.entries, [](const PlanEntry& entry) {
    return entry.sequence->Pools(entry.begin, entry.num_tokens);
  }));
}

TEST(PoolsTest, TokensThatAreNotPooledTakeNone) {
  Driver driver(WithPools(1, 8), 64);
  const Sequence& last = AddPooled(driver, 10, 9);
  EXPECT_FALSE(last.Pools(0, 9));
  EXPECT_TRUE(last.Pools(0, 10));
  EXPECT_TRUE(last.Pools(9, 1));
  EXPECT_FALSE(last.Pools(9, 0));
  const Sequence& mean = AddPooled(driver, 10, 0);
  EXPECT_TRUE(mean.Pools(4, 1));
  EXPECT_FALSE(mean.Pools(4, 0)) << "no token";
  EXPECT_FALSE(mean.Pools(10, 1)) << "after its prompt";
}

TEST(PoolsTest, AStepHasNoMoreThanItsLimit) {
  Driver driver(WithPools(2, 8), 64);
  for (int i = 0; i < 3; ++i) AddPooled(driver, 6, 0);
  EXPECT_EQ(driver.Step(), "prefill 1+6 prefill 2+6");
}

TEST(PoolsTest, WhatAPreemptedOneDidNotTakeIsNotGivenBack) {
  Driver driver(WithPools(1, 12), 15);  // enough for all prompts
  for (int i = 0; i < 3; ++i) driver.Add(4);
  AddPooled(driver, 13, 12);
  AddPooled(driver, 13, 12);
  AddPooled(driver, 13, 0).priority = 1;
  EXPECT_EQ(driver.Step(),
            "prefill 1+4 prefill 2+4 prefill 3+4 prefill 4+12 prefill 5+12 prefill 6+12");
  driver.Step();  // each of the three takes a block of those that are left
  ASSERT_EQ(driver.last().preempted.size(), 1u) << "the last one, in the middle of its prompt";
  EXPECT_EQ(NumPools(driver.last()), 1u);
}

}  // namespace
}  // namespace tandem::coordinator
