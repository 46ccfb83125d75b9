#include "coordinator/api/tokenizer_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace tandem::coordinator {
namespace {

constexpr TokenizerPool::Limits kSmall = {.short_text_bytes = 10, .short_jobs = 3, .long_jobs = 2};

// A job that holds its thread until released. Made before the pool, as all that jobs use: the pool
// ends first.
struct Hold {
  std::promise<void> started, release;
  TokenizerPool::Job job() {
    return [this] {
      started.set_value();
      release.get_future().wait();
    };
  }
};

TEST(TokenizerPoolTest, ALongTextHoldsUpNoShortOne) {
  Hold hold;
  std::promise<void> done;
  TokenizerPool pool(kSmall);
  ASSERT_TRUE(pool.Run(11, hold.job()).ok());
  hold.started.get_future().wait();
  ASSERT_TRUE(pool.Run(10, [&] { done.set_value(); }).ok());
  done.get_future().wait();
  hold.release.set_value();
}

TEST(TokenizerPoolTest, AFullQueueRefusesInOneLine) {
  Hold hold;
  std::atomic<int> num_run = 0;
  TokenizerPool pool(kSmall);
  ASSERT_TRUE(pool.Run(11, hold.job()).ok());
  hold.started.get_future().wait();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(pool.Run(100, [&] { ++num_run; }).ok());
  const absl::Status full = pool.Run(100, [&] { ++num_run; });
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(), "the tokenizer's queue is full: 2 texts of more than 10 bytes wait");
  EXPECT_EQ(num_run, 0);
  hold.release.set_value();
}

TEST(TokenizerPoolTest, AsManyTextsWaitAsRequestsMay) {
  Hold holds[2];  // the threads for short texts
  TokenizerPool pool(TokenizerPool::Limits::For(2));
  for (Hold& hold : holds) {
    ASSERT_TRUE(pool.Run(1, hold.job()).ok());
    hold.started.get_future().wait();
  }
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(pool.Run(1, [] {}).ok());
  EXPECT_EQ(pool.Run(1, [] {}).message(),
            "the tokenizer's queue is full: 2 texts of at most 65536 bytes wait");
  for (Hold& hold : holds) hold.release.set_value();
  EXPECT_EQ(TokenizerPool::Limits::For(5000).short_jobs, 5000u);
  EXPECT_EQ(TokenizerPool::Limits::For(5000).long_jobs, 64u);
}

TEST(TokenizerPoolTest, WhatWaitsAtTheEndRuns) {
  std::atomic<int> num_run = 0;
  {
    Hold hold;
    TokenizerPool pool(kSmall);
    ASSERT_TRUE(pool.Run(11, hold.job()).ok());
    hold.started.get_future().wait();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(pool.Run(100, [&] { ++num_run; }).ok());
    hold.release.set_value();
  }
  EXPECT_EQ(num_run, 2);
}

}  // namespace
}  // namespace tandem::coordinator
