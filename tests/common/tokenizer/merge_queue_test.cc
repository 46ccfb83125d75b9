// The queue of merges against the plainest one there is, short words and long ones.
#include "common/tokenizer/merge_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tandem::tokenizer {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

class EveryLength : public testing::TestWithParam<size_t> {};

// Pushes and pops by turns; a pop may be followed by pushes of better ranks, worse ones and the
// same, before and after the place where the merge was.
TEST_P(EveryLength, TakesTheBestRankThenTheLeftmost) {
  std::mt19937 random(5);
  MergeQueue queue;
  for (int round = 0; round < 60; ++round) {
    const uint32_t ranks = 1 + random() % 12, positions = 1 + random() % 200;
    queue.Start(GetParam());
    std::multiset<Pair> wanted;
    const auto push = [&](uint32_t rank, uint32_t position) {
      queue.Push({rank, position});
      wanted.emplace(rank, position);
    };
    for (uint32_t position = 0; position < positions; ++position) {
      if (random() % 2 == 0) push(random() % ranks, position);
    }
    size_t pushes = 300;
    while (!wanted.empty()) {
      ASSERT_FALSE(queue.empty());
      const auto [rank, position] = queue.Pop();
      ASSERT_EQ(Pair(rank, position), *wanted.begin());
      wanted.erase(wanted.begin());
      for (size_t more = random() % 3; more > 0 && pushes > 0; --more, --pushes) {
        push(random() % ranks, random() % 4 == 0 ? random() % positions : position);
      }
      if (round % 5 == 4 && random() % 100 == 0) break;  // left half done: Start clears it
    }
    ASSERT_EQ(queue.empty(), wanted.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(ShortAndLong, EveryLength, testing::Values(2, MergeQueue::kLongWord));

TEST(MergeQueue, AMillionInOrderAndAMillionBackwards) {
  MergeQueue queue;
  queue.Start(1 << 20);
  for (uint32_t i = 0; i < 1 << 20; ++i) {
    queue.Push({7, i});
    queue.Push({3, (1 << 20) - i});
  }
  for (uint32_t i = 1; i <= 1 << 20; ++i) ASSERT_EQ(queue.Pop().position, i);
  // Each takes the next one's place before it: the worst case for a sorted array.
  for (uint32_t i = 0; i < 1 << 20; ++i) {
    ASSERT_EQ(queue.Pop().position, i);
    if (i > 0 && i < 1 << 19) {
      queue.Push({7, i - 1});
      ASSERT_EQ(queue.Pop().position, i - 1);
    }
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace tandem::tokenizer
