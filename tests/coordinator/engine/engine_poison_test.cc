// A request that ends its workers each time it is computed ends alone: its neighbours get their
// tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/coordinator/engine/engine_loop_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr int kNeighbours = 50;
constexpr uint32_t kTokens = 12;

class EnginePoisonTest : public EngineLoopTest {
 protected:
  EnginePoisonTest() {
    // Large, so that no two requests draw the same tokens.
    engine_.model.vocab_size = engine_.config.vocab_size = 1 << 20;
    engine_.config.max_queued_requests = 64;
    engine_.config.scheduler.max_strikes = 2;
    engine_.config.kv_cache.groups[0].num_blocks = 128;
    recover_ = [this](const absl::Status& loss, const std::function<bool()>&) {
      losses_.push_back(std::string(loss.message()));
      workers_.clear();
      return absl::StatusOr<ReadyWorkers>(engine_.MakeWorkers(Epoch{++epoch_}, &workers_));
    };
  }
  void StartWith(const SimulatedScript& script) {
    engine_.scripts = {{}, script};
    Start();
  }
  // What a request gets from workers that live.
  static std::vector<TokenId> Undisturbed(const std::string& id) {
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.model.vocab_size = engine.config.vocab_size = 1 << 20;
    auto stream = std::make_shared<RecordingStream>();
    auto core = engine.Make();
    core->Add(MakeRequest(id, 9, kTokens, stream), 1);
    while (!core->idle()) EXPECT_TRUE(core->Step().ok());
    return stream->record().tokens;
  }
  // All are in flight before the first step.
  std::map<std::string, Stream> AddAll(const std::vector<std::string>& more) {
    gate_.Close();
    std::map<std::string, Stream> streams;
    for (int i = 0; i < kNeighbours; ++i) {
      const std::string id = "n" + std::to_string(i);
      streams[id] = Add(id, kTokens);
      if (i == 0) gate_.AwaitArrival();
      // Among the first, so that it runs with others.
      if (i == 4) {
        for (const std::string& poisoned : more) streams[poisoned] = Add(poisoned, kTokens);
      }
    }
    gate_.Open();
    return streams;
  }
  static void ExpectUndisturbed(const std::string& id, const Stream& stream) {
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().code, absl::StatusCode::kOk) << stream->record().message;
    EXPECT_EQ(stream->record().tokens, Undisturbed(id)) << id;
  }

  uint64_t epoch_ = 5;
  std::vector<std::string> losses_;  // the engine thread's until the loop has ended
};

TEST_F(EnginePoisonTest, OneRequestFailsAndItsNeighboursLoseNothing) {
  const std::vector<TokenId> drawn = Undisturbed("x");
  for (const size_t position : {0, 5, 10}) {
    losses_.clear();
    StartWith({.poison = drawn[position]});
    for (const auto& [id, stream] : AddAll({"x"})) {
      if (id != "x") {
        ExpectUndisturbed(id, stream);
        continue;
      }
      ASSERT_TRUE(stream->WaitEnd());
      const auto record = stream->record();
      EXPECT_EQ(record.num_ends, 1);
      EXPECT_EQ(record.code, absl::StatusCode::kInternal);
      EXPECT_EQ(record.message,
                "request \"x\" ended a worker each time it was computed, at last alone: rank 1 "
                "exited with signal 9");
      EXPECT_EQ(record.tokens, std::vector<TokenId>(drawn.begin(), drawn.begin() + position + 1));
    }
    loop_->Shutdown();
    EXPECT_EQ(losses_.size(), 3u);
    ExpectAllFree();
    loop_.reset();
    workers_.clear();
  }
}

TEST_F(EnginePoisonTest, TwoOfThemEndOneAfterTheOther) {
  StartWith({.poison = 96});  // in both prompts
  std::vector<Stream> poisoned;
  for (const char* id : {"x", "y"}) {
    gate_.Close();
    auto stream = std::make_shared<RecordingStream>();
    Request request = MakeRequest(id, 9, kTokens, stream);
    request.prompt.back() = 96;
    ASSERT_TRUE(loop_->Add(std::move(request)).ok());
    poisoned.push_back(stream);
  }
  gate_.Open();
  for (const Stream& stream : poisoned) {
    ASSERT_TRUE(stream->WaitEnd());
    EXPECT_EQ(stream->record().code, absl::StatusCode::kInternal);
  }
  Stream healthy = Add("n1", kTokens);
  ExpectUndisturbed("n1", healthy);
  loop_->Shutdown();
  EXPECT_LE(losses_.size(), 6u);
}

TEST_F(EnginePoisonTest, WhatEndsWorkersFromOutsideConvictsNoRequest) {
  const std::vector<TokenId> drawn = Undisturbed("x");
  int num_losses = 0;
  recover_ = [&](const absl::Status&, const std::function<bool()>&) {
    if (++num_losses == 8) engine_.scripts = {};
    workers_.clear();
    return absl::StatusOr<ReadyWorkers>(engine_.MakeWorkers(Epoch{++epoch_}, &workers_));
  };
  StartWith({.poison = drawn[3], .ended_from_outside = true});
  for (const auto& [id, stream] : AddAll({"x"})) ExpectUndisturbed(id, stream);
  EXPECT_EQ(num_losses, 8);
}

}  // namespace
}  // namespace tandem::coordinator
