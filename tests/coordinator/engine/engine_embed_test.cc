// Requests that pool states and generate nothing. The simulated model's states depend on every
// earlier token, through block tables and pages, and doubles add them exactly.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

using Stream = std::shared_ptr<RecordingStream>;

Request EmbedRequest(const std::string& id, size_t prompt_len, Pooling pooling, Stream stream) {
  Request request = MakeRequest(id, prompt_len, 0, std::move(stream));
  request.pooling = pooling;
  return request;
}

// By the model's formulas over the whole prompt, one group, as pages would hold it.
std::vector<float> Reference(const std::string& id, size_t prompt_len, Pooling pooling) {
  const SimulatedModel model;
  const std::vector<TokenId> prompt = MakeRequest(id, prompt_len, 0, nullptr).prompt;
  std::vector<uint64_t> cache, states;
  for (uint32_t position = 0; position < prompt.size(); ++position) {
    uint64_t context = kSimulatedSeed;
    for (const uint64_t kv : cache) context = SimulatedMix(context, kv);
    cache.push_back(SimulatedKv(context, prompt[position], position, 0));
    states.push_back(SimulatedMix(kSimulatedSeed, cache.back()));
  }
  if (pooling == Pooling::kCls) states.resize(1);
  if (pooling == Pooling::kLast) states = {states.back()};
  std::vector<double> sum(model.hidden_size);
  for (const uint64_t state : states) {
    const std::vector<float> hidden = model.Hidden(state);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += hidden[i];
  }
  std::vector<float> mean;
  for (const double value : sum) {
    mean.push_back(static_cast<float>(value / static_cast<double>(states.size())));
  }
  return mean;
}

void ExpectEmbedded(const RecordingStream& stream, const std::string& id, size_t prompt_len,
                    Pooling pooling) {
  const auto record = stream.record();
  EXPECT_EQ(record.code, absl::StatusCode::kOk) << record.message;
  EXPECT_EQ(record.num_ends, 1);
  EXPECT_EQ(record.reason, FinishReason::kLength);
  EXPECT_EQ(record.embedding, Reference(id, prompt_len, pooling));
  EXPECT_TRUE(record.tokens.empty());
  EXPECT_EQ(record.usage.prompt_tokens, prompt_len);
}

constexpr Pooling kAll[] = {Pooling::kMean, Pooling::kCls, Pooling::kLast};

TEST(EngineEmbedTest, EveryCutOfAPromptGivesTheSameVector) {
  for (const uint32_t chunk : {1u, 3u, 32u}) {
    for (const uint32_t depth : {1u, 2u, 3u}) {
      SCOPED_TRACE("chunks of " + std::to_string(chunk) + ", depth " + std::to_string(depth));
      SimulatedEngine engine = SimulatedEngine::Small();
      engine.config.scheduler.chunked_prefill_size = chunk;
      engine.config.pipeline_depth = depth;
      auto core = engine.Make();
      std::vector<Stream> streams;
      uint64_t handle = 0;
      auto generating = std::make_shared<RecordingStream>();
      core->Add(MakeRequest("beside", 9, 12, generating), ++handle);
      for (const size_t prompt_len : {1, 2, 9, 33, 64}) {
        for (const Pooling pooling : kAll) {
          streams.push_back(std::make_shared<RecordingStream>());
          const std::string id = "e" + std::to_string(prompt_len);
          core->Add(EmbedRequest(id, prompt_len, pooling, streams.back()), ++handle);
        }
      }
      RunAll(*core);
      size_t i = 0;
      for (const size_t prompt_len : {1, 2, 9, 33, 64}) {
        for (const Pooling pooling : kAll) {
          ExpectEmbedded(*streams[i++], "e" + std::to_string(prompt_len), prompt_len, pooling);
        }
      }
      EXPECT_EQ(generating->record().tokens.size(), 12u);
    }
  }
}

TEST(EngineEmbedTest, OnlyTheLastTokensStateCanDoWithTheCache) {
  auto core = SimulatedEngine::Small().Make();
  uint64_t handle = 0;
  core->Add(MakeRequest("a", 21, 1, std::make_shared<RecordingStream>()), ++handle);
  RunAll(*core);
  for (const Pooling pooling : kAll) {
    auto stream = std::make_shared<RecordingStream>();
    core->Add(EmbedRequest("a", 21, pooling, stream), ++handle);
    RunAll(*core);
    ExpectEmbedded(*stream, "a", 21, pooling);
    EXPECT_EQ(stream->record().usage.cached_tokens, pooling == Pooling::kLast ? 20u : 0u);
  }
}

TEST(EngineEmbedTest, APreemptedPromptIsPooledOnce) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.kv_cache.groups[0].num_blocks = 22;
  engine.config.scheduler.chunked_prefill_size = 4;
  auto core = engine.Make();
  core->Add(MakeRequest("a", 5, 55, std::make_shared<RecordingStream>()), 1);
  std::vector<Stream> streams;
  for (uint64_t i = 2; i <= 10; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(EmbedRequest("e" + std::to_string(i), 40, kAll[i % 3], streams.back()), i);
  }
  RunAll(*core);
  EXPECT_GT(core->Stats().preemptions, 0);
  for (uint64_t i = 2; i <= 10; ++i) {
    ExpectEmbedded(*streams[i - 2], "e" + std::to_string(i), 40, kAll[i % 3]);
  }
}

TEST(EngineEmbedTest, ALossOfWorkersInAnyStepChangesNothing) {
  for (const Pooling pooling : kAll) {
    for (uint64_t lost_step = 1; lost_step <= 6; ++lost_step) {
      SCOPED_TRACE(lost_step);
      SimulatedEngine engine = SimulatedEngine::Small();
      engine.config.scheduler.chunked_prefill_size = 7;
      engine.scripts = {
          {.faults = {{lost_step, SimulatedFault::kDie}}, .delay_polls = 0, .fail_load = false}};
      auto core = engine.Make();
      auto stream = std::make_shared<RecordingStream>();
      core->Add(EmbedRequest("e", 40, pooling, stream), 1);
      uint64_t epoch = engine.config.epoch.value;
      for (int step = 0; !core->idle() && step < 100; ++step) {
        if (const absl::Status status = core->Step(); !status.ok()) {
          core->Rewind(status);
          engine.scripts = {};
          core->Resume(engine.MakeWorkers(Epoch{++epoch}), Duration{});
        }
      }
      EXPECT_EQ(core->Stats().restarts, 1);
      ExpectEmbedded(*stream, "e", 40, pooling);
    }
  }
}

TEST(EngineEmbedTest, StepsPoolNoMoreStatesThanAResultHolds) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.model.hidden_size = engine.config.hidden_size = 50;
  engine.config.max_result_bytes = 9000;
  const uint32_t most = engine.config.MaxPools();
  ASSERT_GT(most, 1u);
  ASSERT_LT(most, 9u);
  auto core = engine.Make();
  std::vector<Stream> streams;
  for (uint64_t i = 1; i <= 12; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(EmbedRequest("e", 5, Pooling::kMean, streams.back()), i);
  }
  RunAll(*core);  // the workers refuse a step whose result may not fit
  for (const Stream& stream : streams) EXPECT_EQ(stream->record().embedding.size(), 50u);
  EXPECT_EQ(core->Stats().steps, (12 + most - 1) / most);
}

TEST(EngineEmbedTest, StatesThatAreNotFiniteEndTheRequest) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.scripts = {
      {.faults = {{1, SimulatedFault::kNotFinite}}, .delay_polls = 0, .fail_load = false}};
  auto core = engine.Make();
  auto stream = std::make_shared<RecordingStream>();
  core->Add(EmbedRequest("e", 9, Pooling::kMean, stream), 1);
  RunAll(*core);
  EXPECT_EQ(stream->record().code, absl::StatusCode::kInternal);
  EXPECT_NE(stream->record().message.find("final states are not finite"), std::string::npos)
      << stream->record().message;
  EXPECT_EQ(core->Stats().not_finite, 1);
}

TEST(EngineEmbedTest, AWrongNumberOfValuesIsALostWorker) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.scripts = {
      {.faults = {{1, SimulatedFault::kNoRows}}, .delay_polls = 0, .fail_load = false}};
  auto core = engine.Make();
  core->Add(EmbedRequest("e", 9, Pooling::kLast, std::make_shared<RecordingStream>()), 1);
  EXPECT_EQ(core->Step().message(), "rank 0 answered 0 values of 1 pooled states of 5 in step 1");
}

TEST(EngineEmbedTest, ACancelledRequestGivesItsBlocksBack) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.scheduler.chunked_prefill_size = 8;
  auto core = engine.Make();
  auto stream = std::make_shared<RecordingStream>();
  core->Add(EmbedRequest("e", 60, Pooling::kMean, stream), 1);
  ASSERT_NO_FATAL_FAILURE(ExpectStep(*core));
  core->Cancel(1);
  EXPECT_EQ(stream->record().reason, FinishReason::kCancelled);
  EXPECT_TRUE(stream->record().embedding.empty());
  RunAll(*core);
}

}  // namespace
}  // namespace tandem::coordinator
