// How much may wait, in requests and in tokens of prompts.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_loop_fixture.h"

namespace tandem::coordinator {
namespace {

using EngineQueueTest = EngineLoopTest;

TEST_F(EngineQueueTest, AFullQueueRefuses) {
  engine_.config.scheduler.max_num_seqs = 2;
  engine_.config.max_queued_requests = 3;
  Start();
  std::vector<Stream> streams = {AddHeld("held")};
  for (int i = 0; i < 4; ++i) streams.push_back(Add(std::to_string(i)));
  const absl::Status full = AddStatus("late");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "the queue is full: 5 requests in flight, at most 2 running and 3 waiting");
  gate_.Open();
  for (Stream& stream : streams) {
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().tokens.size(), 10u);
  }
  EXPECT_TRUE(Add("late")->WaitEnd());
}

// Prompts count until their requests have a token.
TEST_F(EngineQueueTest, TooManyQueuedTokensAreRefused) {
  engine_.config.scheduler.max_num_seqs = 1;
  engine_.config.max_queued_tokens = 20;
  Start();
  Stream held = AddHeld("held");  // a prompt of 9 tokens
  Stream second = Add("a");
  const absl::Status full = AddStatus("b");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "the queue is full: prompts of 18 tokens wait, and with these 9 they would exceed 20 "
            "(--max-queued-tokens)");
  Cancel("a");
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
  ASSERT_TRUE(second->WaitEnd());
  EXPECT_TRUE(Add("b")->WaitEnd());
}

// Continuations share their prompt, but each computes what is scored.
TEST_F(EngineQueueTest, EqualContinuationsCountTheirTokens) {
  engine_.config.scheduler.max_num_seqs = 1;
  engine_.config.max_queued_tokens = 20;
  Start();
  Stream held = AddHeld("held");
  std::vector<Request> requests;
  for (const char* id : {"a", "b"}) {
    requests.push_back(MakeRequest(id, 9, 0, std::make_shared<RecordingStream>()));
    requests.back().prompt = std::vector<TokenId>(9, 1);
    requests.back().targets = std::vector<TokenId>(8, 1);
  }
  EXPECT_EQ(loop_->AddAll(std::move(requests)).status().message(),
            "the queue is full: prompts of 9 tokens wait, and with these 17 they would exceed 20 "
            "(--max-queued-tokens)");
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
}

// Equal prompts, of which each is computed whole, unless its last state alone is wanted.
TEST_F(EngineQueueTest, EqualInputsOfAMeanCountEach) {
  engine_.config.scheduler.max_num_seqs = 1;
  engine_.config.max_queued_tokens = 20;
  Start();
  Stream held = AddHeld("held");
  const auto add = [&](Pooling pooling) {
    std::vector<Request> requests;
    for (const char* id : {"a", "b"}) {
      requests.push_back(MakeRequest(id, 9, 0, std::make_shared<RecordingStream>()));
      requests.back().prompt = std::vector<TokenId>(9, 1);
      requests.back().pooling = pooling;
    }
    return loop_->AddAll(std::move(requests)).status();
  };
  for (const Pooling pooling : {Pooling::kMean, Pooling::kCls}) {
    EXPECT_EQ(add(pooling).message(),
              "the queue is full: prompts of 9 tokens wait, and with these 18 they would exceed 20 "
              "(--max-queued-tokens)");
  }
  EXPECT_TRUE(add(Pooling::kLast).ok());
  gate_.Open();
  ASSERT_TRUE(held->WaitEnd());
}

// Longer than the bound, but the only one.
TEST_F(EngineQueueTest, ALongPromptIsServedWhenNothingWaits) {
  engine_.config.max_queued_tokens = 1;
  Start();
  Stream first = Add("a");
  ASSERT_TRUE(first->WaitEnd());
  Stream second = Add("b");
  ASSERT_TRUE(second->WaitEnd());
  EXPECT_EQ(second->record().tokens.size(), 10u);
}

}  // namespace
}  // namespace tandem::coordinator
