// Prefix hits of models with recurrent states: blocks and a snapshot.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "coordinator/kvcache/block_manager.h"

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Range(TokenId first, size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Blocks of 4.
class SnapshotsTest : public testing::Test {
 protected:
  static KvCacheConfig Config(uint32_t num_blocks, uint32_t num_snapshots) {
    return {.block_size = 4,
            .enable_prefix_cache = true,
            .groups = {{.num_blocks = num_blocks}},
            .snapshots = SnapshotConfig{.num_snapshots = num_snapshots, .interval = 8}};
  }

  static PrefixMatch Match(const BlockManager& kv, const Tokens& tokens) {
    PrefixHashes hashes;
    return kv.Match(tokens, hashes);
  }
  // Computes all of `tokens` in one step that saves the state after `at` of them; returns the
  // snapshot.
  static kv::SnapshotId Compute(BlockManager& kv, const Tokens& tokens, uint32_t at) {
    SequenceBlocks blocks;
    const auto size = static_cast<uint32_t>(tokens.size());
    EXPECT_TRUE(kv.Start(blocks, Match(kv, tokens), size, size));
    const kv::SnapshotId snapshot = kv.TakeSnapshot(blocks, at);
    Check(kv, {&blocks});
    kv.Commit(blocks, tokens, size);
    Check(kv, {&blocks});
    kv.Release(blocks);
    Check(kv, {});
    return snapshot;
  }
  static void Check(const BlockManager& kv, std::vector<const SequenceBlocks*> live) {
    const absl::Status status = kv.CheckIntegrity(live);
    EXPECT_TRUE(status.ok()) << status;
  }
};

TEST_F(SnapshotsTest, AHitEndsAtASnapshot) {
  BlockManager kv(Config(16, 2));
  const Tokens tokens = Range(0, 14);
  const kv::SnapshotId snapshot = Compute(kv, tokens, 8);
  EXPECT_EQ(kv.Stats().cached_snapshots, 1);
  const PrefixMatch match = Match(kv, tokens);
  EXPECT_EQ(match.num_tokens, 8u);
  EXPECT_EQ(match.num_tokens_in_blocks, 12u);
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, match, 14, 14));
  EXPECT_EQ(blocks.loaded_snapshot(), snapshot);
  EXPECT_EQ(kv.Stats().cached_snapshots, 0) << "it is in use";
  Check(kv, {&blocks});
  kv.Commit(blocks, tokens, 14);
  EXPECT_EQ(blocks.loaded_snapshot(), kNoBlock);
  EXPECT_EQ(kv.Stats().cached_snapshots, 1);
}

TEST_F(SnapshotsTest, WithoutASnapshotItIsAMiss) {
  BlockManager kv(Config(16, 1));
  Compute(kv, Range(0, 14), 4);
  Compute(kv, Range(100, 14), 8);  // takes the only snapshot
  const PrefixMatch match = Match(kv, Range(0, 14));
  EXPECT_EQ(match.num_tokens, 0u);
  EXPECT_EQ(match.num_tokens_in_blocks, 12u);
  EXPECT_TRUE(match.nodes.empty());
  EXPECT_EQ(Match(kv, Range(100, 14)).num_tokens, 8u);
}

TEST_F(SnapshotsTest, ASnapshotOfAStepThatIsLostOrReleasedIsNotPublished) {
  BlockManager kv(Config(16, 2));
  const Tokens tokens = Range(0, 14);
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, {}, 14, 14));
  EXPECT_NE(kv.TakeSnapshot(blocks, 4), kv::kNoSnapshot);
  kv.Commit(blocks, tokens, 3);  // another step's tokens
  EXPECT_EQ(blocks.pending_snapshots().size(), 1u);
  kv.Release(blocks);
  EXPECT_EQ(kv.Stats().cached_snapshots, 0);
  Check(kv, {});
  kv.Forget();
  EXPECT_EQ(Match(kv, tokens).num_tokens_in_blocks, 0u);
}

TEST_F(SnapshotsTest, SequencesInUseKeepTheirSnapshots) {
  BlockManager kv(Config(16, 2));
  Compute(kv, Range(0, 14), 8);
  SequenceBlocks reader, writer, late;
  ASSERT_TRUE(kv.Start(reader, Match(kv, Range(0, 14)), 14, 14));
  ASSERT_TRUE(kv.Start(writer, {}, 9, 9));
  const kv::SnapshotId saved = kv.TakeSnapshot(writer, 8);
  EXPECT_NE(saved, kv::kNoSnapshot);
  EXPECT_NE(saved, reader.loaded_snapshot());
  ASSERT_TRUE(kv.Start(late, {}, 9, 9));
  EXPECT_EQ(kv.TakeSnapshot(late, 8), kv::kNoSnapshot) << "both are in use";
  Check(kv, {&reader, &writer, &late});
  kv.Commit(late, Range(200, 9), 9);
  EXPECT_EQ(Match(kv, Range(200, 9)).num_tokens, 0u);
}

TEST_F(SnapshotsTest, TheSecondSnapshotOfAPrefixIsFreeAgain) {
  BlockManager kv(Config(16, 2));
  const kv::SnapshotId first = Compute(kv, Range(0, 14), 8);
  SequenceBlocks twin;
  ASSERT_TRUE(kv.Start(twin, {}, 14, 14));
  EXPECT_NE(kv.TakeSnapshot(twin, 8), first);
  kv.Commit(twin, Range(0, 14), 14);
  EXPECT_EQ(kv.Stats().cached_snapshots, 1);
  Check(kv, {&twin});
}

// Blocks are evicted from the end of a prefix on. The snapshot of its end is evicted with the last
// of them, and taken before any other.
TEST_F(SnapshotsTest, ASnapshotIsEvictedWithItsBlock) {
  BlockManager kv(Config(4, 3));
  const kv::SnapshotId of_first = Compute(kv, Range(0, 9), 8);
  Compute(kv, Range(100, 5), 4);
  EXPECT_EQ(kv.Stats().cached_snapshots, 2);
  SequenceBlocks large;
  ASSERT_TRUE(kv.Start(large, {}, 8, 8));  // takes free blocks, then the end of the first prefix
  EXPECT_EQ(kv.Stats().cached_snapshots, 1);
  Check(kv, {&large});
  EXPECT_EQ(Match(kv, Range(0, 9)).num_tokens, 0u);
  EXPECT_EQ(Match(kv, Range(100, 5)).num_tokens, 4u);
  EXPECT_EQ(kv.TakeSnapshot(large, 8), of_first);
}

TEST_F(SnapshotsTest, WithoutPrefixCacheNoneAreTaken) {
  KvCacheConfig config = Config(4, 2);
  config.enable_prefix_cache = false;
  BlockManager kv(config);
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, {}, 8, 8));
  EXPECT_EQ(kv.TakeSnapshot(blocks, 8), kv::kNoSnapshot);
}

TEST_F(SnapshotsTest, TheConfigurationIsChecked) {
  KvCacheConfig config = Config(4, 2);
  EXPECT_EQ(config.Text(), "4 KV blocks of 4 tokens and 2 snapshots of recurrent states");
  config.snapshots->interval = 6;
  EXPECT_EQ(config.Validate().message(),
            "a snapshot every 6 tokens: need a multiple of the block size, 4");
}

TEST_F(SnapshotsTest, TheStateBeforeDraftsIsHeldUntilItIsLoaded) {
  BlockManager kv(Config(16, 1));
  const Tokens tokens = Range(0, 9);
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, {}, 9, 9));
  EXPECT_TRUE(kv.HasFreeSnapshot());
  ASSERT_TRUE(kv.SaveState(blocks));
  EXPECT_EQ(blocks.saved_state(), 0);
  EXPECT_FALSE(kv.HasFreeSnapshot());
  EXPECT_EQ(kv.TakeSnapshot(blocks, 8), kv::kNoSnapshot);
  Check(kv, {&blocks});
  kv.Commit(blocks, tokens, 6);
  kv.RestoreState(blocks);
  EXPECT_EQ(blocks.loaded_snapshot(), 0);
  EXPECT_FALSE(kv.HasFreeSnapshot());
  EXPECT_FALSE(kv.SaveState(blocks));
  Check(kv, {&blocks});
  kv.Commit(blocks, tokens, 9);
  EXPECT_EQ(blocks.loaded_snapshot(), kNoBlock);
  ASSERT_TRUE(kv.SaveState(blocks));
  kv.DropSavedState(blocks);
  EXPECT_TRUE(kv.HasFreeSnapshot());
  ASSERT_TRUE(kv.SaveState(blocks));
  kv.Release(blocks);
  Check(kv, {});
  EXPECT_EQ(kv.Stats().cached_snapshots, 0) << "it is no prefix's";
}

}  // namespace
}  // namespace tandem::coordinator
