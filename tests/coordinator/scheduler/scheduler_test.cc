#include "coordinator/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/kv/kv_shape.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "common/tensor/type.h"
#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

TEST(SchedulerTest, NothingToDoIsAnEmptyPlan) {
  Driver driver(Config(4, 16, 16), 8);
  EXPECT_EQ(driver.Step(), "");
}

TEST(SchedulerTest, PrefillsInChunksThenDecodes) {
  Driver driver(Config(4, 16, 5), 16);
  driver.Add(12);
  EXPECT_EQ(driver.Step(), "prefill 1+5");
  EXPECT_FALSE(driver.last().entries[0].samples);
  EXPECT_EQ(driver.Step(), "prefill 1+5");
  EXPECT_EQ(driver.Step(), "prefill 1+2");
  EXPECT_TRUE(driver.last().entries[0].samples);
  EXPECT_EQ(driver.Step(), "decode 1+1");
  EXPECT_TRUE(driver.last().entries[0].samples);
}

TEST(SchedulerTest, DecodesFirstAndPrefillFillsTheBudget) {
  Driver driver(Config(4, 8, 8), 64);
  driver.Add(3);
  driver.Add(3);
  EXPECT_EQ(driver.Step(), "prefill 1+3 prefill 2+3");
  driver.Add(20);
  driver.Add(20);
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+6");
  EXPECT_EQ(driver.last().num_tokens, 8u);
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+6");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+6");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+2 prefill 4+4");
}

TEST(SchedulerTest, PrefillFirstLetsDecodesWait) {
  Driver driver(Config(4, 8, 8, SchedulingPolicy::kPrefillFirst), 64);
  driver.Add(3);
  EXPECT_EQ(driver.Step(), "prefill 1+3");
  driver.Add(15);
  EXPECT_EQ(driver.Step(), "prefill 2+8");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+7");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1");
}

TEST(SchedulerTest, SeatsAreLimitedAndSlotsStable) {
  Driver driver(Config(2, 64, 64), 64);
  Sequence& a = driver.Add(2);
  Sequence& b = driver.Add(2);
  Sequence& c = driver.Add(2);
  EXPECT_EQ(driver.Step(), "prefill 1+2 prefill 2+2");
  const uint32_t slot_b = b.slot;
  EXPECT_NE(a.slot, b.slot);
  EXPECT_LT(a.slot, 2u);
  EXPECT_LT(b.slot, 2u);
  EXPECT_EQ(driver.scheduler().num_waiting(), 1u);
  const uint32_t slot_a = a.slot;
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "decode 2+1 prefill 3+2");
  EXPECT_EQ(b.slot, slot_b);
  EXPECT_EQ(c.slot, slot_a);
}

TEST(SchedulerTest, PreemptsTheLatestAndKeepsItsTokens) {
  // 4 blocks of 4: two sequences of 7 tokens fill them.
  Driver driver(Config(4, 64, 64), 4);
  Sequence& a = driver.Add(7);
  Sequence& b = driver.Add(7);
  EXPECT_EQ(driver.Step(), "prefill 1+7 prefill 2+7");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1");
  // Token 9 of the first needs a fifth block.
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
  EXPECT_EQ(b.num_tokens(), 9u);
  EXPECT_EQ(b.num_computed, 0u);
  EXPECT_TRUE(b.blocks.empty());
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 1);
  EXPECT_EQ(driver.scheduler().Stats().requests, 2);
  EXPECT_EQ(driver.scheduler().num_waiting(), 1u);
  EXPECT_EQ(driver.Step(), "decode 1+1");
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+9");
  EXPECT_TRUE(driver.last().entries[0].samples);
}

// A preempted sequence is in no step: where several are in flight, it may be cancelled and gone
// before the one that preempted it settles.
TEST(SchedulerTest, APlanOutlivesWhatItPreempted) {
  BlockManager kv({.block_size = kBlockSize,
                   .enable_prefix_cache = false,
                   .groups = {{.num_blocks = 4, .window_tokens = 0}}});
  Scheduler scheduler(Config(4, 64, 64), kv);
  Sequence first(1, std::vector<TokenId>(8, 5));
  auto second = std::make_unique<Sequence>(2, std::vector<TokenId>(8, 5));
  scheduler.Enqueue(first);
  scheduler.Enqueue(*second);
  const Plan prefill = scheduler.Schedule();
  scheduler.Advance(prefill);
  scheduler.Settle(prefill);
  first.tokens.push_back(7);
  const Plan plan = scheduler.Schedule();
  scheduler.Advance(plan);
  scheduler.Finish(*second);
  second.reset();
  EXPECT_EQ(plan.preempted, std::vector<uint64_t>{2});
  EXPECT_EQ(plan.DebugString(), "decode 1+1 preempted 2");
  scheduler.Settle(plan);
  scheduler.Finish(first);
}

TEST(SchedulerTest, APreemptedSequenceGoesBeforeThoseThatNeverRan) {
  Driver driver(Config(4, 64, 64), 4);
  Sequence& a = driver.Add(7);
  driver.Add(7);
  driver.Step();
  driver.Step();
  driver.Add(2);  // would fit, but must not overtake
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
  EXPECT_EQ(driver.Step(), "decode 1+1");
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+9 prefill 3+2");
}

TEST(SchedulerTest, TheLatestPreemptsItselfRatherThanAnEarlierOne) {
  Driver driver(Config(4, 64, 64), 4);
  Sequence& a = driver.Add(5);
  driver.Add(8);
  EXPECT_EQ(driver.Step(), "prefill 1+5 prefill 2+8");
  // The second needs a third block; the first has room in its own.
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
  driver.scheduler().Finish(a);
}

TEST(SchedulerTest, PreemptionGivesScheduledTokensBack) {
  // The prefill of the second takes a block from the decode of the third, planned before it.
  Driver driver(Config(3, 16, 4), 8);
  driver.Add(3);
  Sequence& b = driver.Add(24);
  driver.Add(3);
  EXPECT_EQ(driver.Step(), "prefill 1+3 prefill 2+4 prefill 3+3");
  std::string text;
  while (driver.scheduler().Stats().preemptions == 0) text = driver.Step();
  EXPECT_EQ(text, "decode 1+1 prefill 2+4 preempted 3");
  EXPECT_EQ(driver.last().num_tokens, 5u);
  EXPECT_EQ(driver.scheduler().num_running(), 2u);
  driver.scheduler().Finish(b);
}

TEST(SchedulerTest, AdmissionNeedsRoomForTheWholePrompt) {
  Driver driver(Config(4, 64, 4), 6);
  Sequence& a = driver.Add(15);
  EXPECT_EQ(driver.Step(), "prefill 1+4");
  for (int i = 0; i < 3; ++i) driver.Step();
  driver.Add(9);
  EXPECT_EQ(driver.Step(), "decode 1+1");
  driver.scheduler().Finish(a);
  EXPECT_EQ(driver.Step(), "prefill 2+4");
}

TEST(SchedulerTest, APrefixHitIsNotComputedAgain) {
  Driver driver(Config(4, 64, 64), 16, /*prefix_cache=*/true);
  Sequence& a = driver.Add(10, 500);
  EXPECT_EQ(driver.Step(), "prefill 1+10");
  Sequence& b = driver.Add(10, 500);
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+2");
  EXPECT_EQ(a.num_cached, 0u);
  EXPECT_EQ(b.num_cached, 8u);
}

// What did not fit is tried again when less of it is left to compute, not only when blocks return.
TEST(SchedulerTest, APromptThatDoesNotFitIsTriedAgainAsItsPrefixIsComputed) {
  Driver driver(Config(4, 64, 4), 7, /*prefix_cache=*/true);
  driver.Add(16, 500);
  EXPECT_EQ(driver.Step(), "prefill 1+4");
  // Served first, it does not wait for the other's prefix.
  Sequence& b = driver.Add(18, 500, {.virtual_arrival_us = -1});
  EXPECT_EQ(driver.Step(),
            "prefill 1+4");  // it needs 5 blocks, 3 are neither taken nor reserved
  // 8 of its tokens are computed.
  EXPECT_EQ(driver.Step(), "prefill 2+4 prefill 1+4");
  EXPECT_EQ(b.num_cached, 8u);
  EXPECT_EQ(driver.kv().num_returns(), 0u);
}

// Three sequences of any length: a window of 6 tokens spans at most 3 blocks, with a chunk of 5
// tokens 4, and while one prefills another may, the third decodes.
TEST(SchedulerTest, AWindowNeedsNoMoreBlocksAsItMovesOn) {
  for (const bool prefix_cache : {false, true}) {
    Driver driver(Config(3, 16, 5), {{.num_blocks = 11, .window_tokens = 6}}, prefix_cache);
    for (int i = 0; i < 3; ++i) driver.Add(30);
    for (int step = 0; step < 300; ++step) {
      driver.Step();
      EXPECT_FALSE(driver.last().entries.empty());
    }
    EXPECT_EQ(driver.scheduler().num_running(), 3u);
    EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
  }
}

// The blocks that common/kv gives to a window suffice for every sequence slot.
TEST(SchedulerTest, AWindowOfTheKvShapesSizeNeverPreempts) {
  model::ModelSpec spec;
  spec.num_heads = spec.num_kv_heads = 1;
  spec.head_dim = spec.value_dim = spec.ffn_size = spec.vocab_size = 8;
  spec.kv_groups = {{.window_tokens = 9, .layers = {0}}};
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const SchedulerConfig config = Config(6, 16, seed % 2 ? 16 : 5);
    const kv::KvShape shape =
        kv::MakeKvShape(spec, *model::MakeShardPlan(spec, 0, 1),
                        {.model = {.spec = {.max_model_len = config.max_model_len}},
                         .cache = {.block_size = kBlockSize},
                         .limits = {.max_num_seqs = config.max_num_seqs,
                                    .max_num_batched_tokens = config.max_num_batched_tokens}});
    const uint32_t blocks = shape.NumBlocks(UINT32_MAX)[0];
    EXPECT_EQ(blocks, 2u * (6 * 4 + 4));
    Driver driver(config, {{.num_blocks = blocks, .window_tokens = 9}}, seed % 3 == 0);
    std::mt19937 random(seed);
    std::vector<Sequence*> open;
    for (int step = 0; step < 400; ++step) {
      if (open.size() < 9 && random() % 3 == 0) open.push_back(&driver.Add(1 + random() % 90));
      driver.Step();
      if (driver.last().num_tokens < config.max_num_batched_tokens) {
        EXPECT_EQ(driver.scheduler().num_running(), std::min<size_t>(open.size(), 6));
      }
      if (!open.empty() && random() % 8 == 0) {
        const size_t leaves = random() % open.size();
        driver.scheduler().Finish(*open[leaves]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(leaves));
      }
    }
    EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
  }
}

TEST(SchedulerTest, AScarceWindowPreemptsToo) {
  Driver driver(Config(2, 16, 16),
                {{.num_blocks = 64, .window_tokens = 0}, {.num_blocks = 5, .window_tokens = 6}},
                false);
  driver.Add(7);
  Sequence& b = driver.Add(7);
  EXPECT_EQ(driver.Step(), "prefill 1+7 prefill 2+7");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1");
  // Token 9 takes a third block before the first may go.
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
  EXPECT_TRUE(b.blocks.empty());
  // In its third block the first needs no more than two.
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+9");
  const int64_t free_blocks = driver.kv().Stats().free_blocks;
  driver.scheduler().Finish(b);
  EXPECT_GT(driver.kv().Stats().free_blocks, free_blocks);
}

TEST(SchedulerTest, AWindowedHitIsNotComputedAgain) {
  Driver driver(Config(4, 64, 8),
                {{.num_blocks = 32, .window_tokens = 0}, {.num_blocks = 12, .window_tokens = 6}},
                true);
  Sequence& a = driver.Add(30, 500);
  while (a.num_missing() > 1) driver.Step();
  Sequence& b = driver.Add(30, 500);
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+2");
  EXPECT_EQ(b.num_cached, 28u);
  // Position 30 sees 25..30.
  EXPECT_EQ(b.blocks.tables()[1].first_live, 6u);
  EXPECT_EQ(b.blocks.tables()[0].first_live, 0u);
}

TEST(SchedulerTest, CachedTokensAreThoseOfTheFirstRun) {
  Driver driver(Config(4, 64, 64), 4, /*prefix_cache=*/true);
  Sequence& a = driver.Add(7);
  Sequence& b = driver.Add(7);
  driver.Step();
  driver.Step();
  EXPECT_EQ(driver.Step(), "decode 1+1 preempted 2");
  driver.scheduler().Finish(a);
  // Of its two full blocks the first took the later one; the other is hit.
  EXPECT_EQ(driver.scheduler().Stats().cached_tokens, 0);
  EXPECT_EQ(driver.Step(), "prefill 2+5");
  EXPECT_EQ(b.num_cached, 0u);
  EXPECT_EQ(driver.scheduler().Stats().cached_tokens, 4);
}

TEST(SchedulerTest, NoTokenIsLookedUpWithoutAPrefixCache) {
  for (const bool prefix_cache : {false, true}) {
    Driver driver(Config(4, 64, 64), 4, prefix_cache);
    driver.Add(9);
    driver.Step();
    EXPECT_EQ(driver.scheduler().Stats().queried_tokens, prefix_cache ? 9 : 0);
  }
}

TEST(SchedulerTest, FinishRemovesAWaitingSequence) {
  Driver driver(Config(1, 64, 64), 16);
  driver.Add(2);
  Sequence& b = driver.Add(2);
  Sequence& c = driver.Add(2);
  driver.Step();
  driver.scheduler().Finish(b);
  driver.scheduler().Finish(b);
  EXPECT_EQ(driver.scheduler().num_waiting(), 1u);
  EXPECT_EQ(c.state, SequenceState::kWaiting);
}

// Arrivals never end, yet the oldest makes progress in every step and all are served in order.
TEST(SchedulerTest, NoSequenceStarves) {
  for (SchedulingPolicy policy :
       {SchedulingPolicy::kDecodeFirst, SchedulingPolicy::kPrefillFirst}) {
    Driver driver(Config(4, 8, 4, policy), 10);
    std::mt19937 random(3);
    std::vector<Sequence*> open;
    size_t oldest_age = 0;
    int finished = 0;
    for (int step = 0; step < 600; ++step) {
      if (open.size() < 12) open.push_back(&driver.Add(1 + random() % 20));
      driver.Step();
      EXPECT_LE(driver.last().num_tokens, 8u);
      Sequence* oldest = open.front();
      if (oldest->num_generated() >= 10) {
        driver.scheduler().Finish(*oldest);
        open.erase(open.begin());
        oldest_age = 0;
        ++finished;
      }
      ASSERT_LT(++oldest_age, 60u);
    }
    EXPECT_GT(finished, 20);
    EXPECT_GT(driver.scheduler().Stats().preemptions, 0);
  }
}

}  // namespace
}  // namespace tandem::coordinator
