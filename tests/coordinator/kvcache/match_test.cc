// What BlockManager::Match hashes, and remembers for the next try.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "coordinator/kvcache/block_manager.h"

namespace tandem::coordinator {
namespace {

std::vector<TokenId> Range(TokenId first, size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

uint64_t num_hashed = 0;
uint64_t Counting(std::span<const TokenId> tokens, uint64_t parent_hash) {
  ++num_hashed;
  return PrefixIndex::XxHash(tokens, parent_hash);
}

TEST(MatchTest, HashesABlockOnceHoweverOftenItIsTried) {
  BlockManager kv({.block_size = 4, .enable_prefix_cache = true, .groups = {{.num_blocks = 8}}},
                  &Counting);
  SequenceBlocks first;
  ASSERT_TRUE(kv.Start(first, {}, 16, 16));
  kv.Commit(first, Range(0, 16), 8);
  PrefixHashes hashes;
  num_hashed = 0;
  EXPECT_EQ(kv.Match(Range(0, 17), hashes).num_tokens, 8u);
  EXPECT_EQ(num_hashed, 3u);  // up to the block that is not there
  const std::optional<uint64_t> missing = kv.Match(Range(0, 17), hashes).missing;
  ASSERT_TRUE(missing.has_value());
  EXPECT_FALSE(kv.IsCached(*missing));
  EXPECT_EQ(kv.Match(Range(0, 17), hashes).num_tokens, 8u);
  EXPECT_EQ(num_hashed, 3u);
  // More is there now, and more is asked for.
  kv.Commit(first, Range(0, 16), 16);
  EXPECT_TRUE(kv.IsCached(*missing));
  num_hashed = 0;
  EXPECT_EQ(kv.Match(Range(0, 22), hashes).num_tokens, 16u);
  EXPECT_EQ(num_hashed, 2u);
  kv.Release(first);
}

BlockManager SmallManager() {
  return BlockManager(
      {.block_size = 4, .enable_prefix_cache = true, .groups = {{.num_blocks = 8}}});
}

// Computes all of `tokens`.
void Compute(BlockManager& kv, SequenceBlocks& blocks, const std::vector<TokenId>& tokens,
             PrefixHashes& hashes) {
  const auto size = static_cast<uint32_t>(tokens.size());
  ASSERT_TRUE(kv.Start(blocks, kv.Match(tokens, hashes), size, size));
  kv.Commit(blocks, tokens, size);
}

TEST(MatchTest, PrefixesAreSharedWithinOneSaltOnly) {
  BlockManager kv = SmallManager();
  SequenceBlocks first;
  PrefixHashes plain, salted{.salt = "a"}, other{.salt = "b"};
  Compute(kv, first, Range(0, 9), salted);
  EXPECT_EQ(kv.Match(Range(0, 9), salted).num_tokens, 8u);
  EXPECT_EQ(kv.Match(Range(0, 9), plain).num_tokens, 0u);
  EXPECT_EQ(kv.Match(Range(0, 9), other).num_tokens, 0u);
  kv.Release(first);
}

TEST(MatchTest, AfterAResetNothingIsHitThatWasComputedOrBegunBefore) {
  BlockManager kv = SmallManager();
  SequenceBlocks done, running;
  PrefixHashes hashes, of_running, later;
  Compute(kv, done, Range(0, 9), hashes);
  kv.Release(done);
  Compute(kv, running, Range(50, 9), of_running);
  ASSERT_EQ(kv.Match(Range(0, 9), hashes).num_tokens, 8u);
  ASSERT_EQ(kv.Match(Range(50, 9), later).num_tokens, 8u);
  ASSERT_GT(kv.Stats().cached_blocks, 0);

  kv.ResetPrefixCache();
  EXPECT_EQ(kv.Stats().cached_blocks, 0);
  EXPECT_EQ(kv.Match(Range(0, 9), hashes).num_tokens, 0u);  // with hashes of before
  EXPECT_EQ(kv.Match(Range(50, 9), later).num_tokens, 0u);
  ASSERT_TRUE(kv.Grow(running, 16));
  kv.Commit(running, Range(50, 16), 16);
  EXPECT_EQ(kv.Match(Range(50, 17), later).num_tokens, 0u);
  kv.Release(running);
  EXPECT_TRUE(kv.CheckIntegrity({}).ok());
  // The cache still takes and finds new blocks.
  Compute(kv, done, Range(0, 9), hashes);
  EXPECT_EQ(kv.Match(Range(0, 9), hashes).num_tokens, 8u);
  kv.Release(done);
  EXPECT_TRUE(kv.CheckIntegrity({}).ok());
}

}  // namespace
}  // namespace tandem::coordinator
