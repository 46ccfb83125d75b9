#include "coordinator/kvcache/kv_config.h"

#include <gtest/gtest.h>

namespace tandem::coordinator {
namespace {

TEST(KvCacheConfigTest, MostBlocksOfAWindow) {
  const KvCacheConfig config = {.block_size = 4, .enable_prefix_cache = true, .groups = {}};
  const KvGroup window = {.num_blocks = 100, .window_tokens = 6};
  const KvGroup full = {.num_blocks = 100, .window_tokens = 0};
  EXPECT_EQ(config.MostBlocks(full, 1000, 1), 250u);
  // 6 tokens may touch 3 blocks: one, four, one.
  EXPECT_EQ(config.MostBlocks(window, 1000, 1), 3u);
  EXPECT_EQ(config.MostBlocks(window, 3, 1), 1u);
  EXPECT_EQ(config.MostBlocks(window, 1000, 8), 4u);
}

TEST(KvCacheConfigTest, TextNamesEveryGroup) {
  KvCacheConfig config = {
      .block_size = 16, .enable_prefix_cache = true, .groups = {{.num_blocks = 2048}}};
  EXPECT_EQ(config.Text(), "2048 KV blocks of 16 tokens");
  config.groups.push_back({.num_blocks = 88, .window_tokens = 128});
  EXPECT_EQ(config.Text(), "2048 KV blocks of 16 tokens and 88 for a window of 128 tokens");
  config.groups[1].chunked = true;
  EXPECT_EQ(config.Text(), "2048 KV blocks of 16 tokens and 88 for chunks of 128 tokens");
}

TEST(KvCacheConfigTest, RefusesWhatSlotsCannotAddress) {
  KvCacheConfig config = {.block_size = 0, .enable_prefix_cache = true, .groups = {}};
  EXPECT_FALSE(config.Validate().ok());
  config.block_size = 1 << 16;
  EXPECT_FALSE(config.Validate().ok());
  config.groups = {{.num_blocks = 1 << 15}};
  EXPECT_EQ(config.Validate().code(), absl::StatusCode::kInvalidArgument);
  config.groups = {{.num_blocks = 1 << 14}};
  EXPECT_TRUE(config.Validate().ok());
  config.groups = {{.num_blocks = 0}};
  EXPECT_FALSE(config.Validate().ok());
}

}  // namespace
}  // namespace tandem::coordinator
