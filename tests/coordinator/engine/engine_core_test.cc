#include "coordinator/engine/engine_core.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

using Streams = std::vector<std::shared_ptr<RecordingStream>>;

// Runs to the end; checks every block after every step.
void RunAll(EngineCore& core) {
  for (int step = 0; !core.idle(); ++step) {
    ASSERT_LT(step, 10000);
    const absl::Status status = core.Step();
    ASSERT_TRUE(status.ok()) << status;
    const absl::Status integrity = core.CheckIntegrity();
    ASSERT_TRUE(integrity.ok()) << integrity;
  }
  EXPECT_EQ(core.Stats().blocks_free, core.Stats().blocks_total);
}

std::vector<TokenId> RunAlone(Request request) {
  auto stream = std::make_shared<RecordingStream>();
  request.stream = stream;
  auto core = SimulatedEngine::Small().Make();
  core->Add(std::move(request), 1);
  RunAll(*core);
  return stream->record().tokens;
}

TEST(EngineCoreTest, GeneratesUpToMaxTokens) {
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("a", 9, 12, stream), 1);
  EXPECT_EQ(core->Stats().waiting, 1);
  ASSERT_TRUE(core->Step().ok());
  EXPECT_EQ(core->Stats().running, 1);
  EXPECT_EQ(stream->record().tokens.size(), 1u);
  RunAll(*core);
  const auto record = stream->record();
  EXPECT_EQ(record.tokens.size(), 12u);
  EXPECT_EQ(record.num_ends, 1);
  EXPECT_EQ(record.reason, FinishReason::kLength);
  EXPECT_EQ(record.usage.prompt_tokens, 9u);
  EXPECT_EQ(record.usage.completion_tokens, 12u);
  EXPECT_EQ(record.usage.cached_tokens, 0u);
  const EngineStats stats = core->Stats();
  EXPECT_EQ(stats.steps, 12);
  EXPECT_EQ(stats.epoch, 5);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(core->timings().steps, 12);
  EXPECT_GT(core->timings().coordinator_ns(), 0);
}

TEST(EngineCoreTest, AnEmptyEngineDoesNothing) {
  auto core = SimulatedEngine::Small().Make();
  EXPECT_TRUE(core->Step().ok());
  EXPECT_EQ(core->Stats().steps, 0);
}

TEST(EngineCoreTest, AnEndIdStopsAndIsPartOfTheOutput) {
  const std::vector<TokenId> free_run = RunAlone(MakeRequest("a", 9, 12, nullptr));
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 12, stream);
  request.sampling.end_ids = {free_run[4]};
  core->Add(std::move(request), 1);
  RunAll(*core);
  const auto record = stream->record();
  EXPECT_EQ(record.reason, FinishReason::kStop);
  EXPECT_EQ(record.tokens.back(), free_run[4]);
  EXPECT_LE(record.tokens.size(), 5u);
  EXPECT_EQ(record.usage.completion_tokens, record.tokens.size());
}

TEST(EngineCoreTest, AnEndIdAsTheLastTokenIsAStop) {
  const std::vector<TokenId> free_run = RunAlone(MakeRequest("a", 9, 1, nullptr));
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 1, stream);
  request.sampling.end_ids = free_run;
  core->Add(std::move(request), 1);
  RunAll(*core);
  EXPECT_EQ(stream->record().reason, FinishReason::kStop);
}

TEST(EngineCoreTest, MinTokensBansEndIds) {
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 30, stream);
  // Half the vocabulary ends the generation.
  for (TokenId id = 0; id < 97; id += 2) request.sampling.end_ids.push_back(id);
  request.sampling.min_tokens = 20;
  core->Add(std::move(request), 1);
  RunAll(*core);
  const auto record = stream->record();
  ASSERT_GE(record.tokens.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(record.tokens[i] % 2, 1) << i;
  EXPECT_EQ(record.reason, FinishReason::kStop);
}

TEST(EngineCoreTest, AListenerMayStopAndItsBlocksAreFree) {
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>(3);
  core->Add(MakeRequest("a", 9, 20, stream), 1);
  RunAll(*core);
  EXPECT_EQ(stream->record().tokens.size(), 3u);
  EXPECT_EQ(stream->record().num_ends, 1);
}

TEST(EngineCoreTest, CancelFreesBlocksAtOnce) {
  auto core = SimulatedEngine::Small().Make();
  Streams streams;
  for (uint64_t i = 1; i <= 3; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(MakeRequest("r" + std::to_string(i), 9, 20, streams.back()), i);
  }
  core->Cancel(3);  // never ran
  ASSERT_TRUE(core->Step().ok());
  core->Cancel(1);
  core->Cancel(1);
  core->Cancel(77);
  EXPECT_EQ(core->Stats().blocks_free, 64 - 3);
  EXPECT_EQ(streams[0]->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(streams[0]->record().code, absl::StatusCode::kOk);
  EXPECT_EQ(streams[0]->record().usage.completion_tokens, 1u);
  EXPECT_EQ(streams[2]->record().num_ends, 1);
  RunAll(*core);
  EXPECT_EQ(streams[1]->record().tokens.size(), 20u);
}

TEST(EngineCoreTest, ASharedPromptIsComputedOnce) {
  auto core = SimulatedEngine::Small().Make();
  auto first = std::make_shared<RecordingStream>();
  auto second = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("a", 17, 5, first), 1);
  RunAll(*core);
  core->Add(MakeRequest("a", 17, 5, second), 2);
  RunAll(*core);
  EXPECT_EQ(first->record().usage.cached_tokens, 0u);
  EXPECT_EQ(second->record().usage.cached_tokens, 16u);
  EXPECT_EQ(first->record().tokens, second->record().tokens);
}

TEST(EngineCoreTest, PreemptedRequestsGiveTheSameTokens) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.kv_cache.groups[0].num_blocks = 10;
  auto core = engine.Make();
  Streams streams;
  for (uint64_t i = 1; i <= 6; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(MakeRequest("r" + std::to_string(i), 5 + i, 20, streams.back()), i);
  }
  RunAll(*core);
  EXPECT_GT(core->Stats().preemptions, 0);
  for (uint64_t i = 1; i <= 6; ++i) {
    EXPECT_EQ(streams[i - 1]->record().tokens,
              RunAlone(MakeRequest("r" + std::to_string(i), 5 + i, 20, nullptr)));
  }
}

TEST(EngineCoreTest, LogitsGoToTheSink) {
  auto core = SimulatedEngine::Small().Make();
  std::vector<std::vector<float>> logits;
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 4, stream);
  request.want_logits = true;
  request.logits_sink = &logits;
  core->Add(std::move(request), 1);
  core->Add(MakeRequest("b", 5, 4, std::make_shared<RecordingStream>()), 2);
  RunAll(*core);
  ASSERT_EQ(logits.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(logits[i].size(), 97u);
    EXPECT_EQ(std::ranges::max_element(logits[i]) - logits[i].begin(), stream->record().tokens[i]);
  }
}

TEST(EngineCoreTest, ALostWorkerEndsTheStepWithItsName) {
  for (SimulatedFault fault : {SimulatedFault::kDie, SimulatedFault::kError,
                               SimulatedFault::kWrongEpoch, SimulatedFault::kRefuse}) {
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.scripts = {{}, {.faults = {{3, fault}}, .delay_polls = 0, .fail_load = false}};
    auto core = engine.Make();
    auto stream = std::make_shared<RecordingStream>();
    core->Add(MakeRequest("a", 9, 20, stream), 1);
    ASSERT_TRUE(core->Step().ok());
    ASSERT_TRUE(core->Step().ok());
    const absl::Status status = core->Step();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("rank 1"), absl::string_view::npos) << status;
    core->EndAll(status, FinishReason::kNone);
    EXPECT_EQ(stream->record().code, absl::StatusCode::kUnavailable);
    EXPECT_EQ(stream->record().tokens.size(), 2u);
    EXPECT_EQ(core->Stats().blocks_free, core->Stats().blocks_total);
    EXPECT_TRUE(core->CheckIntegrity().ok());
  }
}

TEST(EngineCoreTest, AWorkersNonsenseIsNotBelieved) {
  for (SimulatedFault fault : {SimulatedFault::kBadToken, SimulatedFault::kNoRows}) {
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.scripts = {{.faults = {{1, fault}}, .delay_polls = 0, .fail_load = false}};
    auto core = engine.Make();
    auto stream = std::make_shared<RecordingStream>();
    core->Add(MakeRequest("a", 9, 20, stream), 1);
    const absl::Status status = core->Step();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("rank 0 answered"), absl::string_view::npos) << status;
    EXPECT_TRUE(stream->record().tokens.empty());
    core->EndAll(status, FinishReason::kNone);
  }
}

}  // namespace
}  // namespace tandem::coordinator
