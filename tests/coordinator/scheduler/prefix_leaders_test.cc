// Whose prefix a sequence waits for, whether it does, and what that costs others. Blocks have 4
// tokens.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

constexpr bool kCache = true;

// Of all prompts the first `header` tokens are the same, of these also the next 16.
Sequence& AddAfter(uint32_t header, Driver& driver) {
  Sequence& sequence = AddSharing(driver, header, 18);
  for (uint32_t i = header; i < header + 16; ++i) {
    sequence.tokens[i] = static_cast<TokenId>(500 + i);
  }
  return sequence;
}

TEST(PrefixLeadersTest, AShortCommonHeaderHidesNoPrefix) {
  for (const uint32_t header : {4u, 8u}) {
    SCOPED_TRACE(header);
    Driver driver(Passing(8, 256, 256), 64, kCache);
    AddSharing(driver, header, 30);
    for (int i = 0; i < 3; ++i) AddAfter(header, driver);
    driver.Step();
    ASSERT_EQ(driver.last().entries.size(), 2u);
    EXPECT_EQ(driver.last().entries[1].sequence->handle, 2u);
    EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+2 prefill 4+2");
  }
}

TEST(PrefixLeadersTest, WhatIsServedFirstDoesNotWait) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 16, 2, {.priority = 5, .virtual_arrival_us = 100});
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  AddSharing(driver, 16, 2, {.priority = 0, .virtual_arrival_us = 50});
  EXPECT_EQ(driver.Step(), "prefill 2+8 prefill 1+8");
}

TEST(PrefixLeadersTest, ALessImportantLeaderHidesNone) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  AddSharing(driver, 24, 2, {.priority = 5, .virtual_arrival_us = 100});
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  for (int i = 0; i < 3; ++i) AddSharing(driver, 24, 2, {.priority = 0, .virtual_arrival_us = 50});
  EXPECT_EQ(driver.Step(), "prefill 2+8 prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 2+8 prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 2+2 prefill 3+2 prefill 4+2 prefill 1+2");
}

TEST(PrefixLeadersTest, OfTwoSideBySideTheOtherLeadsOn) {
  Driver driver(Passing(8, 256, 8), 64, kCache);
  const Driver::Place late = {.priority = 5, .virtual_arrival_us = 100};
  AddSharing(driver, 24, 2, late);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  Sequence& important = AddSharing(driver, 24, 2, {.priority = 0, .virtual_arrival_us = 50});
  EXPECT_EQ(driver.Step(), "prefill 2+8 prefill 1+8");
  driver.scheduler().Finish(important);
  AddSharing(driver, 24, 2, late);
  EXPECT_EQ(driver.Step(), "prefill 1+8");
  EXPECT_EQ(driver.Step(), "prefill 1+2 prefill 3+2");
}

TEST(PrefixLeadersTest, AScoredPromptThatOffersLittleHidesNone) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2).scored_from = 5;
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+18 prefill 2+18");
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+2");
}

TEST(PrefixLeadersTest, ASingleBlockIsNotWaitedFor) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 7, 5);
  AddSharing(driver, 7, 5);
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+12");
}

TEST(PrefixLeadersTest, ASmallPartIsWaitedForOnlyIfItTakesAStep) {
  Driver driver(Passing(8, 256, 256), 64, kCache);
  AddSharing(driver, 8, 40);
  AddSharing(driver, 8, 40);
  EXPECT_EQ(driver.Step(), "prefill 1+48 prefill 2+48");
  Driver small_steps(Passing(8, 256, 8), 64, kCache);
  AddSharing(small_steps, 8, 40);
  AddSharing(small_steps, 8, 40);
  EXPECT_EQ(small_steps.Step(), "prefill 1+8");
  EXPECT_EQ(small_steps.Step(), "prefill 1+8 prefill 2+8");
}

TEST(PrefixLeadersTest, NobodyPassesWhatMayNotBeSkipped) {
  Driver driver(Config(8, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  driver.Add(9);
  EXPECT_EQ(driver.Step(), "prefill 1+18");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+2 prefill 3+9");
}

// What ran before the loss keeps its slot.
TEST(PrefixLeadersTest, NobodyPassesWhatRanBefore) {
  Driver driver(Passing(2, 256, 256), 64, kCache);
  AddSharing(driver, 16, 2);
  AddSharing(driver, 16, 2);
  EXPECT_EQ(driver.Step(), "prefill 1+18");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+2");
  driver.Add(9);
  driver.Lose();
  EXPECT_EQ(driver.Step(), "prefill 1+20");
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+3");
}

// Two decode and grow until the leader, of the least important priority, has no room.
TEST(PrefixLeadersTest, APreemptedLeaderIsServedFirstAndLeadsAgain) {
  Driver driver(Passing(8, 10, 4), 9, kCache);
  Sequence& one = driver.Add(3);
  Sequence& other = driver.Add(3);
  for (int i = 0; i < 3; ++i) {
    AddSharing(driver, 24, 2, {.priority = 5, .virtual_arrival_us = 100});
  }
  EXPECT_EQ(driver.Step(), "prefill 1+3 prefill 2+3 prefill 3+4");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 prefill 3+4");
  EXPECT_EQ(driver.scheduler().num_waiting(), 2u);
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1 preempted 3");
  EXPECT_EQ(driver.scheduler().num_waiting(), 3u);
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1") << "nobody passes it";
  driver.scheduler().Finish(one);
  driver.scheduler().Finish(other);
  // The two that grew have taken two of its five blocks.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(driver.Step(), "prefill 3+4");
  EXPECT_EQ(driver.Step(), "prefill 3+2 prefill 4+2 prefill 5+2");
}

// The leader has gone far beyond the window when it is settled, and another one takes the blocks
// that it left: what waited computes its prefix itself, and does not wait a second time.
TEST(PrefixLeadersTest, APrefixThatIsGoneIsWaitedForOnce) {
  Driver driver(Passing(8, 256, 256),
                std::vector<KvGroup>{{.num_blocks = 64}, {.num_blocks = 18, .window_tokens = 6}},
                kCache);
  AddSharing(driver, 16, 40);
  AddSharing(driver, 16, 3);
  AddSharing(driver, 16, 3);
  EXPECT_EQ(driver.Step(), "prefill 1+56");
  EXPECT_EQ(driver.scheduler().num_waiting(), 2u);
  driver.Add(60, -1, {.virtual_arrival_us = -1});
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 4+60");
  EXPECT_EQ(driver.Step(), "decode 4+1 decode 1+1 prefill 2+19 prefill 3+19");
}

KvCacheConfig Recurrent(uint32_t interval, uint32_t num_snapshots = 16) {
  return {.block_size = kBlockSize,
          .enable_prefix_cache = true,
          .groups = {{.num_blocks = 64}},
          .snapshots = SnapshotConfig{.num_snapshots = num_snapshots, .interval = interval}};
}

// The leader keeps its state where the first follower parts from it, though it had no reason of its
// own.
TEST(PrefixLeadersTest, ARecurrentStateIsKeptWhereTheyPart) {
  Driver driver(Passing(8, 256, 256), Recurrent(64));
  for (int i = 0; i < 3; ++i) AddSharing(driver, 20, 13);
  EXPECT_EQ(driver.Step(), "prefill 1+20");  // its own end of the prompt is a point, too
  EXPECT_EQ(driver.last().entries[0].save_after, 20u);
  EXPECT_EQ(driver.Step(), "prefill 1+13 prefill 2+13 prefill 3+13");
  EXPECT_NE(driver.last().entries[1].load_snapshot, kv::kNoSnapshot);
}

TEST(PrefixLeadersTest, OthersGetTheTokensThatTheLeaderGivesBack) {
  Driver driver(Passing(8, 40, 40), Recurrent(64));
  AddSharing(driver, 20, 13);
  AddSharing(driver, 20, 13);
  driver.Add(25);
  EXPECT_EQ(driver.Step(), "prefill 1+20 prefill 3+20");
}

TEST(PrefixLeadersTest, NoStateIsKeptForWhatDoesNotWait) {
  Driver driver(Passing(8, 256, 256), Recurrent(64));
  AddSharing(driver, 8, 25);
  AddSharing(driver, 8, 25);
  EXPECT_EQ(driver.Step(), "prefill 1+33 prefill 2+33");
}

// They come when the leader has passed the place: the first of them computes it again and leads the
// others, from the last state before it, or from the beginning.
TEST(PrefixLeadersTest, ARecurrentStateThatWasNotKeptIsComputedOnce) {
  Driver driver(Passing(8, 256, 12), Recurrent(12));
  AddSharing(driver, 20, 60);
  EXPECT_EQ(driver.Step(), "prefill 1+12");
  EXPECT_EQ(driver.Step(), "prefill 1+12");
  for (int i = 0; i < 3; ++i) AddSharing(driver, 20, 7);
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+8");
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+7 prefill 3+7 prefill 4+7");
}

TEST(PrefixLeadersTest, SoIsOneBeforeWhichNoneWasKept) {
  Driver driver(Passing(8, 256, 12), Recurrent(64));
  AddSharing(driver, 20, 60);
  EXPECT_EQ(driver.Step(), "prefill 1+12");
  EXPECT_EQ(driver.Step(), "prefill 1+12");
  for (int i = 0; i < 3; ++i) AddSharing(driver, 20, 7);
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+12");
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+8");
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+7 prefill 3+7 prefill 4+7");
}

TEST(PrefixLeadersTest, AStateThatCouldNotBeKeptIsWaitedForOnce) {
  Driver driver(Passing(8, 256, 12), Recurrent(64, /*num_snapshots=*/0));
  AddSharing(driver, 24, 30);
  AddSharing(driver, 24, 3);
  AddSharing(driver, 24, 3);
  EXPECT_EQ(driver.Step(), "prefill 1+12");
  EXPECT_EQ(driver.Step(), "prefill 1+12");
  EXPECT_EQ(driver.Step(), "prefill 1+12 prefill 2+12 prefill 3+12");
}

}  // namespace
}  // namespace tandem::coordinator
