#include "common/kv/blocks.h"

#include <gtest/gtest.h>

namespace tandem::kv {
namespace {

TEST(BlocksTest, MostTokensIsTheInverseOfMostBlocks) {
  constexpr uint32_t kBlockSize = 4;
  for (const uint32_t window : {0u, 5u, 9u, 40u}) {
    for (const uint32_t step_tokens : {1u, 6u, 16u}) {
      for (const uint32_t num_blocks : {1u, 3u, 6u, 8u}) {
        const uint64_t most = MostTokensOfSequence(window, num_blocks, step_tokens, kBlockSize);
        const auto blocks = [&](uint32_t tokens) {
          return MostBlocksOfSequence(window, tokens, step_tokens, kBlockSize);
        };
        if (most == UINT64_MAX) {
          EXPECT_LE(blocks(1u << 30), num_blocks) << "window " << window;
          continue;
        }
        EXPECT_LE(blocks(static_cast<uint32_t>(most)), num_blocks) << "window " << window;
        EXPECT_GT(blocks(static_cast<uint32_t>(most) + 1), num_blocks) << "window " << window;
      }
    }
  }
}

TEST(BlocksTest, AWindowBeginsAtItsFirstToken) {
  EXPECT_EQ(WindowStart(0, 100u), 0u);
  EXPECT_EQ(WindowStart(5, 4u), 0u);
  EXPECT_EQ(WindowStart(5, 5u), 1u);
  EXPECT_EQ(FirstLiveBlock(5, 8, 4), 1u);
}

TEST(BlocksTest, AChunkBeginsAtAMultipleOfItsSize) {
  const Window chunks(6, true);
  EXPECT_EQ(WindowStart(chunks, 0u), 0u);
  EXPECT_EQ(WindowStart(chunks, 5u), 0u);
  EXPECT_EQ(WindowStart(chunks, 6u), 6u);
  EXPECT_EQ(WindowStart(chunks, 17u), 12u);
  EXPECT_EQ(FirstLiveBlock(chunks, 11, 4), 1u);
  EXPECT_EQ(FirstLiveBlock(chunks, 12, 4), 3u);
  // Never more blocks than a window of as many tokens.
  for (uint32_t first = 0; first < 40; ++first) {
    for (const uint32_t step_tokens : {1u, 5u, 11u}) {
      const uint32_t live = BlocksFor(first + step_tokens, 4) - FirstLiveBlock(chunks, first, 4);
      EXPECT_LE(live, BlocksOfRun(6, step_tokens, 4)) << first << ", " << step_tokens;
    }
  }
}

}  // namespace
}  // namespace tandem::kv
