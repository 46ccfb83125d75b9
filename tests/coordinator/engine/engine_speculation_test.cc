// Speculation changes how many steps an answer takes, and nothing else. The simulated model's
// tokens depend on every earlier one, and are wrong if what a rejected draft has left is read.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/kv/snapshots.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

// Who guesses, and for what model.
struct Guesser {
  bool on_workers = false;
  bool recurrent = false;
};

struct Outcome {
  std::vector<RecordingStream::Record> records;
  EngineStats stats;
};

void SetBlocks(uint32_t num_blocks, SimulatedEngine& engine) {
  engine.config.kv_cache.groups[0].num_blocks = num_blocks;
}

// One for every `interval` tokens, as a worker counts them.
void SetSnapshots(uint32_t interval, SimulatedEngine& engine) {
  const KvCacheConfig& cache = engine.config.kv_cache;
  const auto count = kv::NumSnapshots(cache.groups[0].num_blocks, interval, cache.block_size);
  engine.config.kv_cache.snapshots = {.num_snapshots = static_cast<uint32_t>(count),
                                      .interval = interval};
}

// With answers of which 15 tokens of 16 repeat every five.
SimulatedEngine Engine(uint32_t max_draft_tokens, Guesser guesser = {}) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.workers_guess = engine.model.workers_guess = guesser.on_workers;
  engine.ranks = 1;
  engine.model.period = 5;
  engine.config.max_draft_tokens = max_draft_tokens;
  engine.config.scheduler.max_draft_rows = guesser.on_workers ? 8 : 14;
  engine.config.scheduler.max_model_len = 200;
  SetBlocks(400, engine);
  engine.model.recurrent = guesser.recurrent;
  if (guesser.recurrent) SetSnapshots(16, engine);
  return engine;
}

Outcome RunAll(const SimulatedEngine& engine, std::vector<Request> requests,
               size_t stop_after = SIZE_MAX) {
  Outcome run;
  auto core = engine.Make();
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (Request& request : requests) {
    streams.push_back(std::make_shared<RecordingStream>(stop_after));
    request.stream = streams.back();
    core->Add(std::move(request), streams.size());
  }
  for (int step = 0; !core->idle() && step < 10000; ++step) {
    const absl::Status status = core->Step();
    EXPECT_TRUE(status.ok()) << status;
    const absl::Status integrity = core->CheckIntegrity();
    EXPECT_TRUE(integrity.ok()) << integrity;
    if (!status.ok() || !integrity.ok()) break;
  }
  for (const auto& stream : streams) run.records.push_back(stream->record());
  run.stats = core->Stats();
  EXPECT_EQ(run.stats.free_blocks, run.stats.total_blocks);
  return run;
}

// Of different lengths, some sampled, some that end early, some with what forbids drafts.
std::vector<Request> Requests() {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 12; ++i) {
    requests.push_back(MakeRequest("r" + std::to_string(i), 1 + 3 * i, 60 + 5 * i, nullptr));
    Sampling& sampling = requests.back().sampling;
    sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    sampling.seed = i;
    if (i % 3 == 0) sampling.logprobs = 2;
    if (i % 5 == 0) sampling.prompt_logprobs = 1;
    if (i == 7) sampling.penalties.frequency = 0.5f;
    if (i % 4 == 2) {
      sampling.end_ids = {90, 91, 92, 93, 94, 95, 96};
      sampling.min_tokens = 40;
    }
  }
  return requests;
}

void ExpectSame(const Outcome& found, const Outcome& wanted) {
  ASSERT_EQ(found.records.size(), wanted.records.size());
  for (size_t i = 0; i < found.records.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found.records[i].tokens, wanted.records[i].tokens);
    EXPECT_EQ(found.records[i].logprobs, wanted.records[i].logprobs);
    EXPECT_EQ(found.records[i].prompt_logprobs, wanted.records[i].prompt_logprobs);
    EXPECT_EQ(found.records[i].reason, wanted.records[i].reason);
    EXPECT_EQ(found.records[i].num_ends, 1);
    const Usage& usage = found.records[i].usage;
    EXPECT_EQ(usage.completion_tokens, wanted.records[i].usage.completion_tokens);
    EXPECT_LE(usage.accepted_draft_tokens, usage.completion_tokens);
    EXPECT_LE(usage.accepted_draft_tokens, usage.draft_tokens);
  }
}

class GuesserTest : public testing::TestWithParam<Guesser> {};

INSTANTIATE_TEST_SUITE_P(Guessers, GuesserTest,
                         testing::Values(Guesser{}, Guesser{.on_workers = true},
                                         Guesser{.recurrent = true},
                                         Guesser{.on_workers = true, .recurrent = true}),
                         [](const auto& param) {
                           return std::string(param.param.on_workers ? "workers" : "ngrams") +
                                  (param.param.recurrent ? "_recurrent" : "");
                         });

TEST_P(GuesserTest, TheSameTokensAtEveryLengthDepthChunkAndNumberOfBlocks) {
  const Outcome wanted = RunAll(Engine(0, GetParam()), Requests());
  EXPECT_EQ(wanted.stats.drafts, 0);
  for (const uint32_t most : {1u, 3u, 8u}) {
    for (const uint32_t depth : {1u, 2u}) {
      for (const uint32_t chunk : {1u, 7u, 32u}) {
        for (const uint32_t blocks : {60u, 400u}) {
          SCOPED_TRACE(testing::Message() << most << " drafts, " << depth << " steps, chunks of "
                                          << chunk << ", " << blocks);
          SimulatedEngine engine = Engine(most, GetParam());
          engine.config.pipeline_depth = depth;
          engine.config.scheduler.chunked_prefill_size = chunk;
          SetBlocks(blocks, engine);
          if (GetParam().recurrent) SetSnapshots(16, engine);
          const Outcome run = RunAll(engine, Requests());
          ExpectSame(run, wanted);
          EXPECT_EQ(run.stats.drafts > 0, chunk > 1);
          EXPECT_EQ(run.stats.preemptions > 0, blocks == 60);
        }
      }
    }
  }
}

TEST_P(GuesserTest, TheSameTokensWithAWindow) {
  SimulatedEngine engine = Engine(0, GetParam());
  engine.config.kv_cache.groups.push_back({.num_blocks = 200, .window_tokens = 9});
  const Outcome wanted = RunAll(engine, Requests());
  engine.config.max_draft_tokens = 8;
  const Outcome run = RunAll(engine, Requests());
  ExpectSame(run, wanted);
  EXPECT_GT(run.stats.accepted_drafts, GetParam().recurrent ? 5 : 10);
}

TEST_P(GuesserTest, AcceptedDraftsSaveSteps) {
  const std::vector<Request> one = {MakeRequest("a", 9, 150, nullptr)};
  const Outcome plain = RunAll(Engine(0, GetParam()), one);
  const Outcome run = RunAll(Engine(8, GetParam()), one);
  ExpectSame(run, plain);
  EXPECT_GT(run.stats.accepted_drafts, 20);
  EXPECT_GE(run.stats.drafts, run.stats.accepted_drafts);
  EXPECT_LE(run.stats.steps, plain.stats.steps - run.stats.accepted_drafts + 1);
}

TEST_P(GuesserTest, TheOnlySequenceThatMayRunHasDraftsToo) {
  const std::vector<Request> two = {MakeRequest("a", 9, 150, nullptr),
                                    MakeRequest("b", 12, 150, nullptr)};
  SimulatedEngine engine = Engine(8, GetParam());
  engine.config.scheduler.max_num_seqs = 1;
  const Outcome run = RunAll(engine, two);
  ExpectSame(run, RunAll(Engine(0, GetParam()), two));
  EXPECT_GT(run.stats.accepted_drafts, 20);
}

// Taken for the prefix cache, too, and at more places than there are snapshots.
TEST(EngineSpeculationTest, TheSameTokensWithFewSnapshots) {
  for (const Guesser guesser :
       {Guesser{.recurrent = true}, {.on_workers = true, .recurrent = true}}) {
    const Outcome wanted = RunAll(Engine(0, guesser), Requests());
    for (const uint32_t interval : {4u, 16u, 400u, 800u, 1600u}) {
      SCOPED_TRACE(interval);
      SimulatedEngine engine = Engine(8, guesser);
      SetSnapshots(interval, engine);
      const Outcome run = RunAll(engine, Requests());
      ExpectSame(run, wanted);
      EXPECT_GT(run.stats.drafts, run.stats.accepted_drafts);
      EXPECT_GT(run.stats.accepted_drafts, 0);
    }
  }
}

TEST(EngineSpeculationTest, NoDraftsWhereNothingRepeats) {
  SimulatedEngine engine = Engine(8);
  engine.model.period = 0;
  EXPECT_EQ(RunAll(engine, Requests()).stats.drafts, 0);
}

// Of 97 guesses one is right by chance.
TEST(EngineSpeculationTest, WorkersWhoseGuessesAreOfNoUseSkipThem) {
  for (const bool recurrent : {false, true}) {
    for (const uint32_t depth : {1u, 2u}) {
      for (const uint32_t blocks : {60u, 400u}) {
        SCOPED_TRACE(testing::Message() << recurrent << ", " << depth << " steps, " << blocks);
        const auto engine = [&](uint32_t max_draft_tokens) {
          const Guesser guesser{.on_workers = true, .recurrent = recurrent};
          SimulatedEngine made = Engine(max_draft_tokens, guesser);
          made.model.period = 0;
          made.config.pipeline_depth = depth;
          SetBlocks(blocks, made);
          if (recurrent) SetSnapshots(16, made);
          return made;
        };
        const Outcome wanted = RunAll(engine(0), Requests());
        const Outcome run = RunAll(engine(8), Requests());
        ExpectSame(run, wanted);
        EXPECT_GT(run.stats.unguessed_steps, 0);
        EXPECT_LT(run.stats.unguessed_steps, run.stats.steps);
        EXPECT_EQ(run.stats.preemptions > 0, blocks == 60);
      }
    }
  }
}

// The simulated guesser is right where it has computed all that it reads, and an error elsewhere.
TEST(EngineSpeculationTest, WhatTheGuesserHasSkippedIsNotHitInThePrefixCache) {
  SimulatedEngine engine = Engine(8, {.on_workers = true});
  auto core = engine.Make();
  uint64_t handle = 0;
  const auto answer = [&](Request request) {
    auto stream = std::make_shared<RecordingStream>();
    request.stream = stream;
    core->Add(std::move(request), ++handle);
    for (int step = 0; !core->idle() && step < 1000; ++step) {
      const absl::Status status = core->Step();
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
    }
    return stream->record();
  };
  for (const bool speculation : {false, true}) {
    Request request = MakeRequest("a" + std::to_string(handle), 30, 60, nullptr);
    request.cache_salt = speculation ? "a" : "b";
    request.sampling.speculation = speculation;
    Request next = request;
    const auto skipped_before = core->Stats().unguessed_steps;
    const RecordingStream::Record first = answer(std::move(request));
    EXPECT_EQ(core->Stats().unguessed_steps - skipped_before, speculation ? 0 : 59);
    next.id = "b" + std::to_string(handle);
    next.prompt.insert(next.prompt.end(), first.tokens.begin(), first.tokens.end());
    next.sampling.speculation = true;
    const int64_t accepted_before = core->Stats().accepted_drafts;
    const uint32_t cached = answer(std::move(next)).usage.cached_tokens;
    EXPECT_GT(core->Stats().accepted_drafts, accepted_before);
    EXPECT_GT(cached, speculation ? 80u : 20u);
    EXPECT_LE(cached, speculation ? 90u : 30u);
  }
}

TEST_P(GuesserTest, NoneForARequestThatForbidsIt) {
  Request request = MakeRequest("a", 9, 150, nullptr);
  request.sampling.speculation = false;
  EXPECT_EQ(RunAll(Engine(8, GetParam()), {request}).stats.drafts, 0);
}

// Every step draws a token besides those that it accepts, also one that ends among its drafts.
TEST_P(GuesserTest, WhatIsBehindAnIdThatEndsItIsNotAccepted) {
  int64_t num_accepted = 0;
  for (TokenId end = 0; end < 5; ++end) {
    for (uint32_t min_tokens = 20; min_tokens < 30; ++min_tokens) {
      SCOPED_TRACE(testing::Message() << "end id " << end << " from token " << min_tokens);
      Request request = MakeRequest("a", 9, 150, nullptr);
      request.sampling.end_ids = {end};
      request.sampling.min_tokens = min_tokens;
      SimulatedEngine alone = Engine(0, GetParam()), drafting = Engine(8, GetParam());
      alone.config.pipeline_depth = drafting.config.pipeline_depth = 1;
      const Outcome plain = RunAll(alone, {request});
      const Outcome run = RunAll(drafting, {request});
      ExpectSame(run, plain);
      EXPECT_EQ(run.records[0].usage.accepted_draft_tokens, run.stats.accepted_drafts);
      EXPECT_EQ(run.stats.steps, plain.stats.steps - run.stats.accepted_drafts);
      num_accepted += run.stats.accepted_drafts;
    }
  }
  EXPECT_GT(num_accepted, 100);
}

TEST_P(GuesserTest, AStopStringEndsAmongAcceptedDrafts) {
  const std::vector<Request> one = {MakeRequest("a", 9, 150, nullptr)};
  for (size_t length = 40; length < 60; ++length) {
    const Outcome plain = RunAll(Engine(0, GetParam()), one, length);
    const Outcome run = RunAll(Engine(8, GetParam()), one, length);
    std::vector<TokenId> tokens = run.records[0].tokens;
    ASSERT_GE(tokens.size(), length);
    tokens.resize(length);  // as a stream ends its text
    EXPECT_EQ(tokens, plain.records[0].tokens);
  }
}

}  // namespace
}  // namespace tandem::coordinator
