// Where the scheduler keeps recurrent states, and begins with them.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/coordinator/scheduler/scheduler_driver.h"

namespace tandem::coordinator {
namespace {

KvCacheConfig Cache(uint32_t num_snapshots, uint32_t interval) {
  return {.block_size = kBlockSize,
          .enable_prefix_cache = true,
          .groups = {{.num_blocks = 64}},
          .snapshots = SnapshotConfig{.num_snapshots = num_snapshots, .interval = interval}};
}

PrefixMatch InBlocksAlone(uint32_t num_tokens) {
  PrefixMatch match;
  match.num_tokens_in_blocks = num_tokens;
  return match;
}

TEST(SnapshotPointsTest, IntervalsTheEndOfThePromptAndOfWhatItShares) {
  const SnapshotPoints points = SnapshotPoints::Of(Cache(1, 16), 27, InBlocksAlone(20));
  std::vector<uint32_t> all;
  for (uint32_t at = points.After(0); at < 50; at = points.After(at)) all.push_back(at);
  EXPECT_EQ(all, (std::vector<uint32_t>{16, 20, 24, 32, 48}));
  // A prompt of whole blocks leaves a token to compute.
  EXPECT_EQ(SnapshotPoints::Of(Cache(1, 64), 24, {}).After(0), 20u);
  EXPECT_EQ(SnapshotPoints::Of(Cache(1, 64), 3, {}).After(0), 64u);
}

TEST(SnapshotPointsTest, AStepPassesOnePointAtMost) {
  const SnapshotPoints points = SnapshotPoints::Of(Cache(1, 16), 27, {});
  EXPECT_EQ(points.Fit(0, 15), 15u);
  EXPECT_EQ(points.Fit(0, 23), 23u);
  EXPECT_EQ(points.Fit(0, 24), 16u);
  EXPECT_EQ(points.Fit(0, 100), 16u);
  EXPECT_EQ(points.Fit(16, 100), 8u);
  EXPECT_EQ(points.Fit(24, 7), 7u);
}

TEST(SnapshotPointsTest, OthersHaveNone) {
  KvCacheConfig config = Cache(1, 16);
  config.snapshots.reset();
  const SnapshotPoints points = SnapshotPoints::Of(config, 27, InBlocksAlone(20));
  EXPECT_EQ(points.After(0), UINT32_MAX);
  EXPECT_EQ(points.Fit(0, 1000), 1000u);
  EXPECT_EQ(SnapshotPoints{}.After(UINT32_MAX - 1), UINT32_MAX);
}

TEST(SchedulerSnapshotsTest, ThePromptsEndIsSavedAndLoaded) {
  Driver driver(Config(4, 64, 64), Cache(4, 64));
  driver.Add(10, 0);
  EXPECT_EQ(driver.Step(), "prefill 1+10");
  const PlanEntry first = driver.last().entries[0];
  EXPECT_EQ(first.load_snapshot, kv::kNoSnapshot);
  EXPECT_NE(first.save_snapshot, kv::kNoSnapshot);
  EXPECT_EQ(first.save_after, 8u);
  EXPECT_EQ(driver.Step(), "decode 1+1");
  EXPECT_EQ(driver.last().entries[0].save_snapshot, kv::kNoSnapshot);
  driver.Add(10, 0);
  EXPECT_EQ(driver.Step(), "decode 1+1 prefill 2+2");
  const PlanEntry hit = driver.last().entries[1];
  EXPECT_EQ(hit.begin, 8u);
  EXPECT_EQ(hit.load_snapshot, first.save_snapshot);
  EXPECT_EQ(driver.Step(), "decode 1+1 decode 2+1");
  EXPECT_EQ(driver.last().entries[1].load_snapshot, kv::kNoSnapshot) << "only its first step";
}

// One prompt shows no more than its own end; the second shows where both part, and the third hits
// there.
TEST(SchedulerSnapshotsTest, ASharedBeginningIsSavedByTheSecondAndHitByTheThird) {
  Driver driver(Config(4, 256, 256), Cache(8, 256));
  std::vector<uint32_t> begins;
  for (const TokenId last : {500, 600, 700}) {
    Sequence& sequence = driver.Add(40, 0);
    for (size_t i = 20; i < 40; ++i) sequence.tokens[i] = last + static_cast<TokenId>(i);
    while (sequence.num_generated() == 0) {
      driver.Step();
      begins.push_back(driver.last().entries.back().begin);
    }
    driver.scheduler().Finish(sequence);
  }
  // The second passes two points: in two steps.
  EXPECT_EQ(begins, (std::vector<uint32_t>{0, 0, 20, 20}));
  EXPECT_EQ(driver.scheduler().Stats().cached_tokens, 20);
}

TEST(SchedulerSnapshotsTest, EveryIntervalIsSavedWhileItDecodes) {
  Driver driver(Config(1, 64, 64), Cache(8, 8));
  Sequence& sequence = driver.Add(3, 0);
  std::vector<uint32_t> saved;
  while (sequence.num_tokens() < 26) {
    driver.Step();
    const PlanEntry& entry = driver.last().entries[0];
    if (entry.save_snapshot != kv::kNoSnapshot) saved.push_back(entry.begin + entry.save_after);
  }
  EXPECT_EQ(saved, (std::vector<uint32_t>{8, 16, 24}));
}

TEST(SchedulerSnapshotsTest, NoneFreeIsNoSnapshotAndNoHarm) {
  Driver driver(Config(4, 64, 64), Cache(1, 64));
  driver.Add(10);
  driver.Add(10);
  EXPECT_EQ(driver.Step(), "prefill 1+10 prefill 2+10");
  const auto& entries = driver.last().entries;
  EXPECT_NE(entries[0].save_snapshot, kv::kNoSnapshot);
  EXPECT_EQ(entries[1].save_snapshot, kv::kNoSnapshot);
  EXPECT_EQ(entries[1].save_after, 0u);
}

TEST(SchedulerSnapshotsTest, LostWorkersLoseTheSnapshots) {
  Driver driver(Config(4, 64, 64), Cache(4, 64));
  Sequence& sequence = driver.Add(10, 0);
  driver.Step();
  EXPECT_EQ(driver.kv().Stats().cached_snapshots, 1);
  driver.Lose();
  EXPECT_EQ(driver.kv().Stats().cached_snapshots, 0);
  EXPECT_EQ(driver.Step(), "prefill 1+11");
  EXPECT_EQ(driver.last().entries[0].load_snapshot, kv::kNoSnapshot);
  EXPECT_EQ(sequence.num_cached, 0u);
}

}  // namespace
}  // namespace tandem::coordinator
