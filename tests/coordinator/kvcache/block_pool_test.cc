#include "coordinator/kvcache/block_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace tandem::coordinator {
namespace {

class BlockPoolTest : public testing::Test {
 protected:
  // Allocates every block, gives each contents and frees them in `order`.
  void FillAndFree(const std::vector<size_t>& order) {
    std::vector<BlockRef> refs;
    for (uint32_t i = 0; i < pool_.total_blocks(); ++i) {
      refs.push_back(pool_.Allocate());
      pool_.SetContents(refs.back().id(), static_cast<PrefixNodeId>(100 + i));
    }
    for (size_t i : order) refs[i].Reset();
  }

  std::vector<std::pair<BlockId, PrefixNodeId>> evicted_;
  BlockPool pool_{
      4, [this](BlockId block, PrefixNodeId contents) { evicted_.emplace_back(block, contents); }};
};

TEST_F(BlockPoolTest, GivesEveryBlockOnceThenNone) {
  std::vector<BlockRef> refs;
  std::vector<bool> seen(4, false);
  for (int i = 0; i < 4; ++i) {
    refs.push_back(pool_.Allocate());
    ASSERT_TRUE(refs.back());
    EXPECT_FALSE(seen[refs.back().id()]);
    seen[refs.back().id()] = true;
  }
  EXPECT_EQ(pool_.free_blocks(), 0u);
  const BlockRef none = pool_.Allocate();
  EXPECT_FALSE(none);
  EXPECT_EQ(none.id(), kNoBlock);
  EXPECT_TRUE(pool_.CheckIntegrity().ok());
}

TEST_F(BlockPoolTest, LastOwnerReturnsTheBlock) {
  BlockRef first = pool_.Allocate();
  const BlockId id = first.id();
  BlockRef second = first;
  BlockRef third = pool_.Share(id);
  EXPECT_EQ(pool_.owners(id), 3u);
  first.Reset();
  BlockRef moved = std::move(second);
  EXPECT_EQ(pool_.owners(id), 2u);
  EXPECT_FALSE(second);  // NOLINT: a moved-from ref is empty
  third = BlockRef();
  EXPECT_TRUE(pool_.in_use(id));
  EXPECT_EQ(pool_.num_returns(), 0u);
  moved.Reset();
  EXPECT_FALSE(pool_.in_use(id));
  EXPECT_EQ(pool_.free_blocks(), 4u);
  EXPECT_EQ(pool_.num_returns(), 1u);
  EXPECT_TRUE(pool_.CheckIntegrity().ok());
}

TEST_F(BlockPoolTest, SelfAssignmentKeepsTheBlock) {
  BlockRef ref = pool_.Allocate();
  BlockRef& alias = ref;
  ref = alias;
  EXPECT_EQ(pool_.owners(ref.id()), 1u);
}

TEST_F(BlockPoolTest, FreeBlocksAreReusedOldestFirst) {
  FillAndFree({2, 0, 3, 1});
  EXPECT_EQ(pool_.cached_blocks(), 4u);
  std::vector<BlockRef> refs;
  for (BlockId expected : {2, 0, 3, 1}) {
    refs.push_back(pool_.Allocate());
    EXPECT_EQ(refs.back().id(), expected);
    EXPECT_EQ(pool_.contents(expected), kNoPrefix);
  }
  const std::vector<std::pair<BlockId, PrefixNodeId>> expected = {
      {2, 102}, {0, 100}, {3, 103}, {1, 101}};
  EXPECT_EQ(evicted_, expected);
}

TEST_F(BlockPoolTest, SharingAFreeBlockKeepsItsContents) {
  FillAndFree({0, 1, 2, 3});
  {
    const BlockRef hit = pool_.Share(0);
    EXPECT_EQ(pool_.contents(0), 100);
    EXPECT_EQ(pool_.cached_blocks(), 3u);
    EXPECT_EQ(pool_.free_blocks(), 3u);
  }
  // Block 0 was used last, so it is reused last.
  std::vector<BlockRef> refs;
  for (BlockId expected : {1, 2, 3, 0}) {
    refs.push_back(pool_.Allocate());
    EXPECT_EQ(refs.back().id(), expected);
  }
}

TEST_F(BlockPoolTest, BlocksWithoutContentsAreReusedBeforeCachedOnes) {
  BlockRef cached = pool_.Allocate();
  pool_.SetContents(cached.id(), 7);
  cached.Reset();
  BlockRef plain = pool_.Allocate();
  const BlockId id = plain.id();
  plain.Reset();
  EXPECT_EQ(pool_.Allocate().id(), id);
  EXPECT_EQ(pool_.cached_blocks(), 1u);
  EXPECT_TRUE(evicted_.empty());
}

TEST_F(BlockPoolTest, RandomUseKeepsEveryBlockInOneList) {
  std::mt19937 random(1);
  std::vector<BlockRef> held;
  for (int i = 0; i < 2000; ++i) {
    switch (random() % 4) {
      case 0:
        if (BlockRef ref = pool_.Allocate()) {
          if (random() % 2) pool_.SetContents(ref.id(), i);
          held.push_back(std::move(ref));
        }
        break;
      case 1:
        if (!held.empty()) held.push_back(held[random() % held.size()]);
        break;
      case 2:
        held.push_back(pool_.Share(static_cast<BlockId>(random() % 4)));
        break;
      default:
        if (!held.empty()) held.erase(held.begin() + random() % held.size());
    }
    if (held.size() > 20) held.clear();
    const absl::Status status = pool_.CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status;
  }
  held.clear();
  EXPECT_EQ(pool_.free_blocks(), 4u);
}

TEST(BlockPoolDeathTest, ARefMayNotOutliveItsPool) {
  EXPECT_DEATH(
      {
        auto* pool = new BlockPool(1, [](BlockId, PrefixNodeId) {});
        BlockRef ref = pool->Allocate();
        delete pool;
      },
      "outlive their pool");
}

TEST_F(BlockPoolTest, ContentsAreSetOncePerAllocation) {
  BlockRef ref = pool_.Allocate();
  pool_.SetContents(ref.id(), 5);
  EXPECT_DEATH(pool_.SetContents(ref.id(), 6), "contents 5");
}

}  // namespace
}  // namespace tandem::coordinator
