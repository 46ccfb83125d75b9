#include "coordinator/kvcache/block_manager.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

uint64_t SameForAll(std::span<const TokenId>, uint64_t) { return 1; }

Tokens Range(TokenId first, size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

PrefixMatch Match(const BlockManager& kv, const Tokens& tokens) {
  PrefixHashes hashes;
  return kv.Match(tokens, hashes);
}

// Block size 4; group 0 sees everything, group 1 a window of 6 tokens.
class BlockManagerTest : public testing::Test {
 protected:
  static KvCacheConfig TwoGroups(uint32_t full_blocks, uint32_t window_blocks) {
    return {.block_size = 4,
            .enable_prefix_cache = true,
            .groups = {{.num_blocks = full_blocks, .window_tokens = 0},
                       {.num_blocks = window_blocks, .window_tokens = 6}}};
  }

  void Check(std::vector<const SequenceBlocks*> live) {
    const absl::Status status = kv_.CheckIntegrity(live);
    EXPECT_TRUE(status.ok()) << status;
  }
  // Computes all of `tokens` in one step and publishes them.
  bool Compute(SequenceBlocks& blocks, const Tokens& tokens) {
    const PrefixMatch match = Match(kv_, tokens);
    const auto size = static_cast<uint32_t>(tokens.size());
    if (!kv_.Start(blocks, match, size, size)) return false;
    kv_.Commit(blocks, tokens, size);
    return true;
  }
  static Tokens Ids(const SequenceBlocks& blocks, size_t group) {
    Tokens ids;
    for (const BlockRef& ref : blocks.tables()[group].blocks) ids.push_back(ref.id());
    return ids;
  }

  BlockManager kv_{TwoGroups(8, 8)};
};

TEST_F(BlockManagerTest, SharedTokensAreThoseThatOthersHoldToo) {
  SequenceBlocks one, other;
  EXPECT_EQ(kv_.SharedTokens(one), 0u);
  ASSERT_TRUE(Compute(one, Range(0, 11)));
  EXPECT_EQ(kv_.SharedTokens(one), 0u);
  ASSERT_TRUE(Compute(other, Range(0, 15)));
  EXPECT_EQ(kv_.SharedTokens(one), 8u);
  EXPECT_EQ(kv_.SharedTokens(other), 8u);
  kv_.Release(other);
  EXPECT_EQ(kv_.SharedTokens(one), 0u);
  kv_.Release(one);
}

TEST_F(BlockManagerTest, AWindowGivesItsEarlyBlocksBack) {
  SequenceBlocks blocks;
  const Tokens tokens = Range(0, 20);
  ASSERT_TRUE(kv_.Start(blocks, {}, 8, 20));
  EXPECT_EQ(Ids(blocks, 1).size(), 2u);
  kv_.Commit(blocks, tokens, 8);
  // Position 8 sees 3..8: block 0 still holds 3.
  EXPECT_EQ(blocks.tables()[1].first_live, 0u);
  ASSERT_TRUE(kv_.Grow(blocks, 9));
  kv_.Commit(blocks, tokens, 9);
  // Position 9 sees 4..9.
  EXPECT_EQ(blocks.tables()[1].first_live, 1u);
  EXPECT_EQ(Ids(blocks, 1)[0], kNoBlock);
  EXPECT_NE(Ids(blocks, 1)[1], kNoBlock);
  EXPECT_EQ(blocks.tables()[0].first_live, 0u);
  ASSERT_TRUE(kv_.Grow(blocks, 20));
  kv_.Commit(blocks, tokens, 20);
  EXPECT_EQ(blocks.tables()[1].first_live, 3u);
  Check({&blocks});
  EXPECT_EQ(kv_.Stats().free_blocks, 16 - 5 - 2);
  kv_.Release(blocks);
  Check({&blocks});
  EXPECT_EQ(kv_.Stats().free_blocks, 16);
  EXPECT_EQ(kv_.Stats().total_blocks, 16);
  EXPECT_EQ(kv_.Stats().cached_blocks, 10);
}

TEST_F(BlockManagerTest, AHitSharesTheBlocksOfBothGroups) {
  SequenceBlocks first;
  ASSERT_TRUE(Compute(first, Range(0, 18)));
  const Tokens longer = Range(0, 17);
  const PrefixMatch match = Match(kv_, longer);
  EXPECT_EQ(match.num_tokens, 16u);
  SequenceBlocks second;
  ASSERT_TRUE(kv_.Start(second, match, 17, 17));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Ids(first, 0)[i], Ids(second, 0)[i]);
  EXPECT_NE(Ids(first, 0)[4], Ids(second, 0)[4]);
  // Position 16 sees 11..16, so blocks 0 and 1 of the window are not even looked for.
  EXPECT_EQ(second.tables()[1].first_live, 2u);
  EXPECT_EQ(Ids(second, 1)[1], kNoBlock);
  EXPECT_EQ(Ids(second, 1)[3], Ids(first, 1)[3]);
  Check({&first, &second});
  kv_.Release(first);
  Check({&first, &second});
  kv_.Release(second);
  EXPECT_EQ(kv_.Stats().free_blocks, 16);
}

TEST_F(BlockManagerTest, AHitNeverCoversTheWholePrompt) {
  SequenceBlocks first;
  ASSERT_TRUE(Compute(first, Range(0, 16)));
  EXPECT_EQ(Match(kv_, Range(0, 16)).num_tokens, 12u);
  EXPECT_EQ(Match(kv_, Range(0, 17)).num_tokens, 16u);
  EXPECT_EQ(Match(kv_, Range(0, 4)).num_tokens, 0u);
  EXPECT_EQ(Match(kv_, Range(0, 1)).num_tokens, 0u);
  EXPECT_EQ(Match(kv_, {}).num_tokens, 0u);
  EXPECT_EQ(Match(kv_, Range(1, 17)).num_tokens, 0u);
  kv_.Release(first);
}

TEST_F(BlockManagerTest, OnlyComputedBlocksAreHit) {
  SequenceBlocks first;
  const Tokens tokens = Range(0, 20);
  ASSERT_TRUE(kv_.Start(first, {}, 20, 20));
  EXPECT_EQ(Match(kv_, tokens).num_tokens, 0u);
  kv_.Commit(first, tokens, 7);
  EXPECT_EQ(Match(kv_, tokens).num_tokens, 4u);
  kv_.Commit(first, tokens, 8);
  EXPECT_EQ(Match(kv_, tokens).num_tokens, 8u);
  kv_.Release(first);
}

TEST_F(BlockManagerTest, FreedBlocksAreStillHitUntilReused) {
  BlockManager kv({.block_size = 4, .enable_prefix_cache = true, .groups = {{.num_blocks = 8}}});
  SequenceBlocks first;
  ASSERT_TRUE(kv.Start(first, {}, 16, 16));
  kv.Commit(first, Range(0, 16), 16);
  kv.Release(first);
  EXPECT_EQ(Match(kv, Range(0, 17)).num_tokens, 16u);
  // 6 of 8 blocks: 4 have no contents, so 2 cached ones go, and those are the end of the prefix.
  SequenceBlocks other;
  ASSERT_TRUE(kv.Start(other, {}, 24, 24));
  EXPECT_EQ(Match(kv, Range(0, 17)).num_tokens, 8u);
  const SequenceBlocks* live[] = {&other};
  EXPECT_TRUE(kv.CheckIntegrity(live).ok());
  kv.Release(other);
}

TEST_F(BlockManagerTest, AWindowedHitNeedsOnlyTheBlocksInTheWindow) {
  SequenceBlocks first;
  const Tokens tokens = Range(0, 24);
  ASSERT_TRUE(Compute(first, tokens));
  // The window holds 19.. only: earlier blocks of group 1 are free and get reused by another
  // sequence.
  SequenceBlocks other;
  ASSERT_TRUE(kv_.Start(other, {}, 4, 4));
  ASSERT_TRUE(kv_.Grow(other, 8));
  kv_.Release(other);
  EXPECT_EQ(Match(kv_, Range(0, 25)).num_tokens, 24u);
  Check({&first});
  kv_.Release(first);
}

// The hit is the longest that suits both groups: a window that lost an early block still serves the
// prefixes that do not see it.
TEST_F(BlockManagerTest, AWindowedHitNeedsItsWindowCached) {
  BlockManager kv(TwoGroups(16, 8));
  SequenceBlocks first;
  ASSERT_TRUE(kv.Start(first, {}, 24, 24));
  kv.Commit(first, Range(0, 24), 24);
  for (uint32_t blocks = 0; blocks < 6; ++blocks) {
    EXPECT_EQ(Match(kv, Range(0, 4 * blocks + 1)).num_tokens, 4 * blocks);
  }
  // Two blocks of the window are empty, the third is the one that was released first.
  SequenceBlocks hog;
  ASSERT_TRUE(kv.Start(hog, {}, 12, 12));
  EXPECT_EQ(Match(kv, Range(0, 5)).num_tokens, 0u);    // position 4 sees 0..4
  EXPECT_EQ(Match(kv, Range(0, 9)).num_tokens, 0u);    // position 8 sees 3..8
  EXPECT_EQ(Match(kv, Range(0, 13)).num_tokens, 12u);  // position 12 sees 7..12
  EXPECT_EQ(Match(kv, Range(0, 25)).num_tokens, 24u);
  // One block more, and prefixes of 12 tokens are gone too.
  ASSERT_TRUE(kv.Grow(hog, 16));
  EXPECT_EQ(Match(kv, Range(0, 13)).num_tokens, 0u);
  EXPECT_EQ(Match(kv, Range(0, 17)).num_tokens, 16u);
  // A prompt that differs after 23 tokens.
  std::vector<TokenId> other = Range(0, 30);
  other[23] = 99;
  EXPECT_EQ(Match(kv, other).num_tokens, 20u);
  kv.Release(first);
  kv.Release(hog);
}

// A chunk's blocks are released when it ends, all at once, and a hit at its end needs none of them.
TEST_F(BlockManagerTest, ChunksAreReleasedWhenTheyEnd) {
  KvCacheConfig config = TwoGroups(16, 8);
  config.groups[1].window_tokens = 8;
  config.groups[1].chunked = true;
  BlockManager kv(config);
  SequenceBlocks first;
  ASSERT_TRUE(kv.Start(first, {}, 4, 4));
  for (uint32_t computed = 4; computed <= 20; computed += 4) {
    ASSERT_TRUE(kv.Grow(first, computed));
    kv.Commit(first, Range(0, computed), computed);
    // Group 0 has all; group 1 what the token at `computed` sees.
    const int64_t live = computed / 4 + computed % 8 / 4;
    EXPECT_EQ(kv.Stats().total_blocks - kv.Stats().free_blocks, live) << computed;
    EXPECT_TRUE(kv.CheckWindow(first, computed, computed).ok()) << computed;
  }
  // Three blocks of group 1 were never used: the hog also takes the first chunk's two and the
  // second chunk's first.
  SequenceBlocks hog;
  ASSERT_TRUE(kv.Start(hog, {}, 24, 24));
  EXPECT_EQ(Match(kv, Range(0, 9)).num_tokens, 8u);    // position 8 sees itself
  EXPECT_EQ(Match(kv, Range(0, 13)).num_tokens, 8u);   // position 12 sees 8..12
  EXPECT_EQ(Match(kv, Range(0, 17)).num_tokens, 16u);  // position 16 sees itself
  EXPECT_EQ(Match(kv, Range(0, 21)).num_tokens, 20u);
  kv.Release(first);
  kv.Release(hog);
}

// The full group's first block is needed by every hit.
TEST_F(BlockManagerTest, AWindowAloneIsNoHit) {
  BlockManager kv(TwoGroups(6, 8));
  SequenceBlocks first;
  ASSERT_TRUE(kv.Start(first, {}, 24, 24));
  kv.Commit(first, Range(0, 24), 24);
  kv.Release(first);
  SequenceBlocks hog;
  ASSERT_TRUE(kv.Start(hog, {}, 4, 4));  // takes the end of the full group's prefix
  EXPECT_EQ(Match(kv, Range(0, 25)).num_tokens, 20u);
  ASSERT_TRUE(kv.Grow(hog, 24));
  EXPECT_EQ(Match(kv, Range(0, 25)).num_tokens, 0u);
  EXPECT_GT(kv.Stats().cached_blocks, 0);  // of the window
  kv.Release(hog);
}

TEST_F(BlockManagerTest, AHitTakesOnlyTheWindowsBlocks) {
  BlockManager kv(TwoGroups(16, 4));
  SequenceBlocks first;
  for (uint32_t computed = 0; computed < 24; computed += 4) {
    ASSERT_TRUE(computed == 0 ? kv.Start(first, {}, 4, 24) : kv.Grow(first, computed + 4));
    kv.Commit(first, Range(0, 24), computed + 4);
    EXPECT_TRUE(kv.CheckWindow(first, computed + 4, computed + 4).ok());
    EXPECT_LE(first.tables()[1].num_live(), 2u);
  }
  kv.Release(first);
  const PrefixMatch match = Match(kv, Range(0, 26));
  ASSERT_EQ(match.num_tokens, 24u);
  SequenceBlocks second;
  ASSERT_TRUE(kv.Start(second, match, 26, 26));
  EXPECT_EQ(second.tables()[1].num_live(), 3u);
  EXPECT_TRUE(kv.CheckWindow(second, 24, 26).ok());
  EXPECT_FALSE(kv.CheckWindow(second, 20, 26).ok());  // a position without its block
  EXPECT_FALSE(kv.CheckWindow(second, 24, 29).ok());  // a position without room
  EXPECT_FALSE(kv.CheckWindow(second, 27, 28).ok());  // a block that is not read
  kv.Release(second);
}

// A sequence that ends before its reservation is used makes room, also where others share all that
// it holds.
TEST_F(BlockManagerTest, ALapsedReservationCountsAsAReturn) {
  SequenceBlocks first, second;
  ASSERT_TRUE(kv_.Start(first, {}, 4, 24));
  kv_.Commit(first, Range(0, 24), 4);
  const PrefixMatch match = Match(kv_, Range(0, 8));
  ASSERT_EQ(match.num_tokens, 4u);
  ASSERT_TRUE(kv_.Start(second, match, 8, 8));
  SequenceBlocks third;
  EXPECT_FALSE(kv_.Start(third, {}, 8, 8));
  const uint64_t returns = kv_.num_returns();
  kv_.Release(first);
  EXPECT_EQ(kv_.Stats().free_blocks, 12);  // as before
  EXPECT_NE(kv_.num_returns(), returns);
  EXPECT_TRUE(kv_.Start(third, {}, 8, 8));
  kv_.Release(second);
  kv_.Release(third);
}

// Known tokens reserve blocks, which delays admissions, only until the window has reached them.
TEST_F(BlockManagerTest, AWindowReservesNothingOnceAllTokensAreIn) {
  BlockManager kv({.block_size = 4,
                   .enable_prefix_cache = false,
                   .groups = {{.num_blocks = 5, .window_tokens = 6}}});
  SequenceBlocks first, second;
  ASSERT_TRUE(kv.Start(first, {}, 8, 24));  // steps of 8: at most 4 blocks at a time
  EXPECT_EQ(first.tables()[0].reserved_blocks, 2u);
  EXPECT_FALSE(kv.Start(second, {}, 8, 8));
  kv.Commit(first, Range(0, 24), 8);
  ASSERT_TRUE(kv.Grow(first, 16));
  kv.Commit(first, Range(0, 24), 16);
  EXPECT_EQ(first.tables()[0].reserved_blocks, 2u);
  EXPECT_FALSE(kv.Start(second, {}, 8, 8));
  ASSERT_TRUE(kv.Grow(first, 24));
  kv.Commit(first, Range(0, 24), 24);
  EXPECT_EQ(first.tables()[0].reserved_blocks, 0u);
  EXPECT_EQ(first.tables()[0].num_live(), 2u);
  EXPECT_TRUE(kv.Start(second, {}, 8, 8));
  const SequenceBlocks* live[] = {&first, &second};
  EXPECT_TRUE(kv.CheckIntegrity(live).ok());
  kv.Release(first);
  kv.Release(second);
}

TEST_F(BlockManagerTest, AFirstStepMayBeSmallerThanThoseToCome) {
  BlockManager kv({.block_size = 4,
                   .enable_prefix_cache = false,
                   .groups = {{.num_blocks = 8, .window_tokens = 6}}});
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, {}, 1, 100, 16));
  EXPECT_EQ(blocks.tables()[0].peak_blocks, 6u);  // 21 tokens in a row
  EXPECT_EQ(blocks.tables()[0].reserved_blocks, 5u);
  kv.Release(blocks);
  EXPECT_FALSE(kv.Start(blocks, {}, 1, 100, 32));
  EXPECT_TRUE(kv.Start(blocks, {}, 1, 32, 32));  // never more than all
  kv.Release(blocks);
}

TEST_F(BlockManagerTest, WithoutRoomNothingChanges) {
  SequenceBlocks first;
  ASSERT_TRUE(kv_.Start(first, {}, 28, 28));
  SequenceBlocks second;
  EXPECT_FALSE(kv_.Start(second, {}, 8, 8));
  EXPECT_TRUE(second.empty());
  // The first chunk fits, all of it does not.
  EXPECT_FALSE(kv_.Start(second, {}, 4, 8));
  ASSERT_TRUE(kv_.Start(second, {}, 4, 4));
  EXPECT_FALSE(kv_.Grow(second, 5));
  EXPECT_EQ(Ids(second, 0).size(), 1u);
  EXPECT_EQ(Ids(second, 1).size(), 1u);
  Check({&first, &second});
  kv_.Release(first);
  EXPECT_TRUE(kv_.Grow(second, 5));
  kv_.Release(second);
}

TEST_F(BlockManagerTest, AHitOnFreeBlocksCountsThem) {
  SequenceBlocks first;
  ASSERT_TRUE(Compute(first, Range(0, 16)));
  kv_.Release(first);
  SequenceBlocks other;
  ASSERT_TRUE(kv_.Start(other, {}, 12, 12));
  // 5 blocks are free in group 0, of which the 4 hits are part: 5 more tokens than hits need one
  // block, 9 need two.
  PrefixMatch match = Match(kv_, Range(0, 24));
  ASSERT_EQ(match.num_tokens, 16u);
  SequenceBlocks second;
  EXPECT_FALSE(kv_.Start(second, match, 24, 24));
  EXPECT_TRUE(second.empty());
  ASSERT_TRUE(kv_.Start(second, match, 20, 20));
  Check({&other, &second});
  kv_.Release(second);
  kv_.Release(other);
}

TEST_F(BlockManagerTest, TheSameTokensComputedTwiceArePublishedOnce) {
  const Tokens tokens = Range(0, 9);
  SequenceBlocks first, second;
  ASSERT_TRUE(kv_.Start(first, {}, 9, 9));
  ASSERT_TRUE(kv_.Start(second, {}, 9, 9));
  kv_.Commit(first, tokens, 9);
  kv_.Commit(second, tokens, 9);
  Check({&first, &second});
  kv_.Release(first);
  kv_.Release(second);
  Check({});
  EXPECT_EQ(kv_.Stats().cached_blocks, 4);
  EXPECT_EQ(Match(kv_, tokens).num_tokens, 8u);
}

// Its twin's blocks may be reused while a sequence publishes behind them.
TEST_F(BlockManagerTest, APublishedPrefixMayLoseItsBlocksAndGetThemBack) {
  const Tokens tokens = Range(0, 13);
  SequenceBlocks first, second;
  ASSERT_TRUE(kv_.Start(first, {}, 8, 8));
  ASSERT_TRUE(kv_.Start(second, {}, 8, 8));
  kv_.Commit(first, tokens, 8);
  kv_.Commit(second, tokens, 8);  // private copies
  kv_.Release(first);
  SequenceBlocks hog;
  ASSERT_TRUE(kv_.Start(hog, {}, 20, 20));
  ASSERT_TRUE(kv_.Grow(second, 12));
  kv_.Commit(second, tokens, 12);
  Check({&second, &hog});
  kv_.Release(hog);
  // The middle is there, but not what lies before it.
  EXPECT_EQ(Match(kv_, tokens).num_tokens, 0u);
  SequenceBlocks third;
  ASSERT_TRUE(kv_.Start(third, {}, 8, 8));
  kv_.Commit(third, tokens, 8);
  EXPECT_EQ(Match(kv_, tokens).num_tokens, 12u);
  Check({&second, &third});
  kv_.Release(second);
  kv_.Release(third);
  Check({});
}

TEST(BlockManagerHashTest, ACollisionIsNeverAHit) {
  BlockManager kv({.block_size = 4, .enable_prefix_cache = true, .groups = {{.num_blocks = 8}}},
                  &SameForAll);
  SequenceBlocks first, second;
  ASSERT_TRUE(kv.Start(first, {}, 9, 9));
  kv.Commit(first, Range(0, 9), 9);
  EXPECT_EQ(Match(kv, Range(0, 9)).num_tokens, 4u);  // its second block collides with the first
  EXPECT_EQ(Match(kv, Range(50, 9)).num_tokens, 0u);
  ASSERT_TRUE(kv.Start(second, {}, 9, 9));
  kv.Commit(second, Range(50, 9), 9);
  EXPECT_EQ(Match(kv, Range(50, 9)).num_tokens, 0u);
  const SequenceBlocks* live[] = {&first, &second};
  EXPECT_TRUE(kv.CheckIntegrity(live).ok());
  kv.Release(first);
  kv.Release(second);
}

TEST(BlockManagerHashTest, WithoutThePrefixCacheNothingIsKept) {
  BlockManager kv({.block_size = 4, .enable_prefix_cache = false, .groups = {{.num_blocks = 8}}});
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, {}, 9, 9));
  kv.Commit(blocks, Range(0, 9), 9);
  kv.Release(blocks);
  EXPECT_EQ(Match(kv, Range(0, 9)).num_tokens, 0u);
  EXPECT_EQ(kv.Stats().cached_blocks, 0);
}

TEST(BlockManagerHashTest, CheckIntegritySeesAForgottenTable) {
  BlockManager kv({.block_size = 4, .enable_prefix_cache = true, .groups = {{.num_blocks = 8}}});
  SequenceBlocks blocks;
  ASSERT_TRUE(kv.Start(blocks, {}, 4, 4));
  EXPECT_EQ(kv.CheckIntegrity({}).code(), absl::StatusCode::kInternal);
  kv.Release(blocks);
  EXPECT_TRUE(kv.CheckIntegrity({}).ok());
}

}  // namespace
}  // namespace tandem::coordinator
