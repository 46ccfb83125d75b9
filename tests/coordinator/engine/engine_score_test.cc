// Requests that score ids and generate nothing. The simulated model's rows depend on every earlier
// token, through block tables and pages; the reference is what a request that generates says of the
// same tokens as its prompt.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

using Stream = std::shared_ptr<RecordingStream>;

// The last `num_targets` of `all` are scored after the others.
Request ScoreRequest(const std::string& id, std::vector<TokenId> all, size_t num_targets,
                     Stream stream) {
  Request request;
  request.id = id;
  request.targets.assign(all.end() - static_cast<std::ptrdiff_t>(num_targets), all.end());
  all.pop_back();
  request.prompt = std::move(all);
  request.sampling.prompt_logprobs = 1;
  request.stream = std::move(stream);
  return request;
}

std::vector<TokenId> Tokens(const std::string& id, size_t count) {
  return MakeRequest(id, count, 1, nullptr).prompt;
}

// Of the last `num_targets` of `all`.
std::vector<TokenLogprobs> Reference(const std::vector<TokenId>& all, size_t num_targets) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.scheduler.max_model_len = 128;
  auto core = engine.Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("reference", 1, 1, stream);
  request.prompt = all;
  request.sampling.prompt_logprobs = 1;
  core->Add(std::move(request), 1);
  RunAll(*core);
  const std::vector<TokenLogprobs> logprobs = stream->record().prompt_logprobs;
  return {logprobs.end() - static_cast<std::ptrdiff_t>(num_targets), logprobs.end()};
}

void ExpectScored(const RecordingStream& stream, const std::vector<TokenId>& all,
                  size_t num_targets) {
  const auto record = stream.record();
  EXPECT_EQ(record.code, absl::StatusCode::kOk) << record.message;
  EXPECT_EQ(record.num_ends, 1);
  EXPECT_EQ(record.reason, FinishReason::kLength);
  EXPECT_EQ(record.prompt_logprobs, Reference(all, num_targets));
  EXPECT_TRUE(record.tokens.empty());
  EXPECT_EQ(record.usage.prompt_tokens, all.size() - 1);
  EXPECT_EQ(record.usage.completion_tokens, 0u);
}

struct Wanted {
  size_t num_tokens, num_targets;
};

TEST(EngineScoreTest, LogprobsAreThoseOfAPromptForEveryCutOfIt) {
  for (const uint32_t chunk : {1u, 3u, 32u}) {
    for (const uint32_t depth : {1u, 2u, 3u}) {
      SCOPED_TRACE("chunks of " + std::to_string(chunk) + ", depth " + std::to_string(depth));
      SimulatedEngine engine = SimulatedEngine::Small();
      engine.config.scheduler.chunked_prefill_size = chunk;
      engine.config.pipeline_depth = depth;
      auto core = engine.Make();
      const std::vector<Wanted> all = {{2, 1}, {9, 1}, {9, 8}, {20, 5}, {33, 16}, {65, 2}};
      std::vector<Stream> streams;
      auto generating = std::make_shared<RecordingStream>();
      core->Add(MakeRequest("beside", 9, 12, generating), 100);
      for (const Wanted& one : all) {
        streams.push_back(std::make_shared<RecordingStream>());
        core->Add(ScoreRequest("s" + std::to_string(streams.size()),
                               Tokens("t" + std::to_string(streams.size()), one.num_tokens),
                               one.num_targets, streams.back()),
                  100 + streams.size());
      }
      RunAll(*core);
      for (size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(i);
        ExpectScored(*streams[i], Tokens("t" + std::to_string(i + 1), all[i].num_tokens),
                     all[i].num_targets);
      }
      EXPECT_EQ(generating->record().tokens.size(), 12u);
    }
  }
}

TEST(EngineScoreTest, ContinuationsShareThePrompt) {
  auto core = SimulatedEngine::Small().Make();
  const std::vector<TokenId> prompt = Tokens("prompt", 18);
  for (uint64_t i = 1; i <= 3; ++i) {
    std::vector<TokenId> all = prompt;
    for (const TokenId id : Tokens("c" + std::to_string(i), 3 * i)) all.push_back(id);
    auto stream = std::make_shared<RecordingStream>();
    core->Add(ScoreRequest("s" + std::to_string(i), all, 3 * i, stream), i);
    RunAll(*core);
    ExpectScored(*stream, all, 3 * i);
    // Whole blocks of 4, up to the last of the prompt's tokens, whose row is wanted.
    EXPECT_EQ(stream->record().usage.cached_tokens, i == 1 ? 0u : 16u);
  }
  EXPECT_EQ(core->Stats().cached_tokens, 32);
  EXPECT_EQ(core->Stats().queried_tokens, 3 * 18);
}

// The row of a token from the cache would be missing.
TEST(EngineScoreTest, ACachedTokenWhoseRowIsWantedIsComputed) {
  auto core = SimulatedEngine::Small().Make();
  const std::vector<TokenId> all = Tokens("prompt", 25);
  core->Add(MakeRequest("prompt", 25, 1, std::make_shared<RecordingStream>()), 1);
  RunAll(*core);
  uint64_t handle = 1;
  for (const size_t num_targets : {1, 2, 8, 9, 24}) {
    auto stream = std::make_shared<RecordingStream>();
    core->Add(ScoreRequest("again", all, num_targets, stream), ++handle);
    RunAll(*core);
    SCOPED_TRACE(num_targets);
    ExpectScored(*stream, all, num_targets);
    EXPECT_EQ(stream->record().usage.cached_tokens, (24 - num_targets) / 4 * 4);
  }
}

TEST(EngineScoreTest, APreemptedRequestGivesEachTokenOnce) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.kv_cache.groups[0].num_blocks = 22;
  engine.config.scheduler.chunked_prefill_size = 4;
  auto core = engine.Make();
  std::vector<Stream> streams;
  // What generates outgrows the room left beside it; the youngest is preempted, a score.
  core->Add(MakeRequest("a", 5, 55, std::make_shared<RecordingStream>()), 1);
  for (uint64_t i = 2; i <= 9; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    Request request =
        ScoreRequest("s" + std::to_string(i), Tokens("t" + std::to_string(i), 40), 30, nullptr);
    request.stream = streams.back();
    core->Add(std::move(request), i);
  }
  RunAll(*core);
  EXPECT_GT(core->Stats().preemptions, 0);
  for (uint64_t i = 2; i <= 9; ++i) {
    ExpectScored(*streams[i - 2], Tokens("t" + std::to_string(i), 40), 30);
  }
}

TEST(EngineScoreTest, ALossOfWorkersInAnyStepChangesNothing) {
  const std::vector<TokenId> all = Tokens("t", 40);
  for (uint64_t lost_step = 1; lost_step <= 8; ++lost_step) {
    SCOPED_TRACE(lost_step);
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.config.scheduler.chunked_prefill_size = 7;
    engine.scripts = {
        {.faults = {{lost_step, SimulatedFault::kDie}}, .delay_polls = 0, .fail_load = false}};
    auto core = engine.Make();
    auto stream = std::make_shared<RecordingStream>();
    core->Add(ScoreRequest("s", all, 25, stream), 1);
    uint64_t epoch = engine.config.epoch.value;
    for (int step = 0; !core->idle() && step < 100; ++step) {
      if (const absl::Status status = core->Step(); !status.ok()) {
        core->Rewind(status);
        engine.scripts = {};
        core->Resume(engine.MakeWorkers(Epoch{++epoch}), Duration{});
      }
    }
    EXPECT_EQ(core->Stats().restarts, lost_step <= 6 ? 1 : 0);
    ExpectScored(*stream, all, 25);
  }
}

TEST(EngineScoreTest, StepsHaveNoMoreRowsThanAResultHolds) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.scheduler.max_num_seqs = 4;
  engine.config.max_result_bytes = 6200;
  const uint32_t most = engine.config.MaxScoredTokens();
  ASSERT_GT(most, 2u);
  ASSERT_LT(most, 20u);
  auto core = engine.Make();
  std::vector<Stream> streams;
  for (uint64_t i = 1; i <= 6; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(ScoreRequest("s" + std::to_string(i), Tokens("t" + std::to_string(i), 60), 6 * i,
                           streams.back()),
              i);
  }
  RunAll(*core);  // the workers refuse a step whose result may not fit
  for (uint64_t i = 1; i <= 6; ++i) {
    ExpectScored(*streams[i - 1], Tokens("t" + std::to_string(i), 60), 6 * i);
  }
}

TEST(EngineScoreTest, ACancelledRequestGivesItsBlocksBack) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.scheduler.chunked_prefill_size = 8;
  auto core = engine.Make();
  auto stream = std::make_shared<RecordingStream>();
  core->Add(ScoreRequest("s", Tokens("t", 60), 50, stream), 1);
  ASSERT_NO_FATAL_FAILURE(ExpectStep(*core));
  ASSERT_NO_FATAL_FAILURE(ExpectStep(*core));
  core->Cancel(1);
  EXPECT_EQ(stream->record().reason, FinishReason::kCancelled);
  EXPECT_LT(stream->record().prompt_logprobs.size(), 50u);
  RunAll(*core);
}

}  // namespace
}  // namespace tandem::coordinator
