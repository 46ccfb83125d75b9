#include "common/base/queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tandem {
namespace {

// Long enough that only a broken queue lets it pass.
Deadline Far() { return Deadline::After(std::chrono::minutes(1)); }
Deadline Passed() { return Deadline::After(Duration::zero()); }

TEST(BoundedQueueTest, FirstInFirstOut) {
  BoundedQueue<int> queue(3);
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_EQ(queue.Pop(Far()), 1);
  EXPECT_TRUE(queue.TryPush(3));
  EXPECT_EQ(queue.Drain(), (std::vector<int>{2, 3}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(BoundedQueueTest, FullRefusesAndLeavesTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto item = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(item)));
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(*item, 2);
}

TEST(BoundedQueueTest, PopAnswersNothingAtTheDeadline) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.Pop(Passed()), std::nullopt);
  queue.WaitNonEmpty(Passed());  // returns
}

TEST(BoundedQueueTest, ClosedRefusesPushesButGivesWhatItHas) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.TryPush(1));
  queue.Close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.TryPush(2));
  EXPECT_EQ(queue.Pop(Far()), 1);
  EXPECT_EQ(queue.Pop(Far()), std::nullopt);
}

TEST(BoundedQueueTest, CloseWakesAWaitingPop) {
  BoundedQueue<int> queue(1);
  std::thread waiter([&] { EXPECT_EQ(queue.Pop(Far()), std::nullopt); });
  queue.Close();
  waiter.join();
}

TEST(BoundedQueueTest, ManyProducersAndConsumersLoseAndDoubleNothing) {
  constexpr int kThreads = 4;
  constexpr int kPerThread = 2000;
  BoundedQueue<int> queue(16);
  std::vector<std::thread> producers;
  for (int t = 0; t < kThreads; ++t) {
    producers.emplace_back([&queue, t] {
      for (int i = 0; i < kPerThread; ++i) {
        int item = t * kPerThread + i;
        while (!queue.TryPush(std::move(item))) std::this_thread::yield();
      }
    });
  }
  std::vector<std::vector<int>> taken(kThreads);
  std::vector<std::thread> consumers;
  for (int t = 0; t < kThreads; ++t) {
    consumers.emplace_back([&queue, &mine = taken[t]] {
      while (auto item = queue.Pop(Far())) mine.push_back(*item);
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.Close();
  for (std::thread& thread : consumers) thread.join();
  std::multiset<int> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kPerThread));
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), all.size());
}

}  // namespace
}  // namespace tandem
