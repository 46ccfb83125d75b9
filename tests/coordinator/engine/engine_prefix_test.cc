// Prompt tokens that are computed when equal prefixes arrive together. The simulated model's tokens
// depend on every earlier one, so a prefix that was not there yet changes answers.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr uint32_t kBlock = 16;
constexpr uint32_t kPrefix = 2048;
constexpr uint32_t kTail = 20;

SimulatedEngine Engine(uint32_t max_num_batched_tokens, uint32_t max_num_seqs = 256) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.scheduler = {.max_num_seqs = max_num_seqs,
                             .max_num_batched_tokens = max_num_batched_tokens,
                             .chunked_prefill_size = max_num_batched_tokens,
                             .max_model_len = 4096,
                             .max_queue_skips = 8};
  engine.config.kv_cache = {
      .block_size = kBlock, .enable_prefix_cache = true, .groups = {{.num_blocks = 4096}}};
  engine.config.max_queued_requests = 1024;
  return engine;
}

// Prompts of the same `shared` tokens and `own` others each, for a few tokens.
std::vector<Request> Storm(uint32_t count, uint32_t shared, uint32_t own) {
  std::vector<Request> requests;
  const std::vector<TokenId> prefix = MakeRequest("prefix", shared, 1, nullptr).prompt;
  for (uint32_t i = 0; i < count; ++i) {
    requests.push_back(MakeRequest("r" + std::to_string(i), own, 3, nullptr));
    std::vector<TokenId>& prompt = requests.back().prompt;
    prompt.insert(prompt.begin(), prefix.begin(), prefix.end());
    requests.back().sampling.temperature = 0.8f;
    requests.back().sampling.seed = i;
  }
  return requests;
}

struct Outcome {
  std::vector<std::vector<TokenId>> tokens;
  int64_t computed = 0;  // prompt tokens, of all admissions
  EngineStats stats;
};

// Adds all at once; `disturb` is called before each step.
Outcome RunAll(const SimulatedEngine& engine, std::vector<Request> requests,
               const std::function<void(EngineCore&, int step)>& disturb = nullptr) {
  Outcome run;
  auto core = engine.Make();
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (Request& request : requests) {
    streams.push_back(std::make_shared<RecordingStream>());
    request.stream = streams.back();
    core->Add(std::move(request), streams.size());
  }
  for (int step = 0; !core->idle() && step < 10000; ++step) {
    if (disturb) disturb(*core, step);
    const absl::Status status = core->Step();
    EXPECT_TRUE(status.ok()) << status;
    const absl::Status integrity = core->CheckIntegrity();
    EXPECT_TRUE(integrity.ok()) << integrity;
    if (!status.ok() || !integrity.ok()) break;
  }
  for (const auto& stream : streams) run.tokens.push_back(stream->record().tokens);
  run.stats = core->Stats();
  run.computed = run.stats.queried_tokens - run.stats.cached_tokens;
  EXPECT_EQ(run.stats.free_blocks, run.stats.total_blocks);
  return run;
}

std::vector<std::vector<TokenId>> WithoutCache(SimulatedEngine engine,
                                               std::vector<Request> requests) {
  engine.config.kv_cache.enable_prefix_cache = false;
  engine.config.kv_cache.snapshots.reset();
  return RunAll(engine, std::move(requests)).tokens;
}

TEST(EnginePrefixTest, ContinuationsComputeAtMostABlockEach) {
  for (const uint32_t budget : {512u, 8192u}) {
    SCOPED_TRACE(budget);
    const Outcome run = RunAll(Engine(budget), Storm(8, kPrefix, 0));
    EXPECT_LE(run.computed, kPrefix + 8 * kBlock);
    EXPECT_EQ(run.tokens, WithoutCache(Engine(budget), Storm(8, kPrefix, 0)));
  }
}

TEST(EnginePrefixTest, TwoHundredPromptsComputeTheirPrefixOnce) {
  for (const uint32_t budget : {512u, 8192u}) {
    for (const uint32_t seqs : {16u, 256u}) {
      SCOPED_TRACE(testing::Message() << budget << " tokens, " << seqs << " sequences");
      const Outcome run = RunAll(Engine(budget, seqs), Storm(200, kPrefix, kTail));
      EXPECT_LE(run.computed, kPrefix + 200 * (kTail + kBlock));
    }
  }
}

TEST(EnginePrefixTest, InTheStrictOrderOfTheQueueToo) {
  SimulatedEngine engine = Engine(512);
  engine.config.scheduler.max_queue_skips = 0;
  const Outcome run = RunAll(engine, Storm(200, kPrefix, kTail));
  EXPECT_LE(run.computed, kPrefix + 200 * (kTail + kBlock));
}

TEST(EnginePrefixTest, WithLongTailsToo) {
  const Outcome run = RunAll(Engine(8192), Storm(12, kPrefix, 1900));
  EXPECT_LE(run.computed, kPrefix + 12 * (1900 + kBlock));
}

TEST(EnginePrefixTest, WithAWindowToo) {
  SimulatedEngine engine = Engine(8192);
  engine.config.kv_cache.groups.push_back({.num_blocks = 2048, .window_tokens = 100});
  const Outcome run = RunAll(engine, Storm(40, kPrefix, kTail));
  EXPECT_LE(run.computed, kPrefix + 40 * (kTail + kBlock));
  EXPECT_EQ(run.tokens, WithoutCache(engine, Storm(40, kPrefix, kTail)));
}

TEST(EnginePrefixTest, WithRecurrentStatesToo) {
  for (const uint32_t budget : {512u, 8192u}) {
    SCOPED_TRACE(budget);
    SimulatedEngine engine = Engine(budget);
    engine.model.recurrent = true;
    engine.config.kv_cache.snapshots = SnapshotConfig{.num_snapshots = 128, .interval = 512};
    // The prefix ends between two intervals.
    const Outcome run = RunAll(engine, Storm(40, kPrefix - 3 * kBlock, kTail));
    EXPECT_LE(run.computed, kPrefix + 512 + 40 * (kTail + kBlock));
    EXPECT_EQ(run.tokens, WithoutCache(engine, Storm(40, kPrefix - 3 * kBlock, kTail)));
  }
}

TEST(EnginePrefixTest, TheNextOneGoesOnWhereACancelledLeaderWas) {
  const Outcome run =
      RunAll(Engine(512), Storm(40, kPrefix, kTail), [](EngineCore& core, int step) {
        if (step == 2) core.Cancel(1);
      });
  EXPECT_LE(run.computed, kPrefix + 512 + 40 * (kTail + kBlock));
  auto wanted = WithoutCache(Engine(512), Storm(40, kPrefix, kTail));
  wanted[0].clear();
  EXPECT_EQ(run.tokens, wanted);
}

// In step 3 the first one computes it, in step 6 all of them have it.
TEST(EnginePrefixTest, AfterALossOfWorkersItIsComputedOnceMore) {
  const SimulatedEngine engine = Engine(512);
  const auto wanted = WithoutCache(engine, Storm(40, kPrefix, kTail));
  for (const int lost_in : {3, 6}) {
    SCOPED_TRACE(lost_in);
    const Outcome run = RunAll(engine, Storm(40, kPrefix, kTail), [&](EngineCore& core, int step) {
      if (step != lost_in) return;
      core.Rewind(absl::UnavailableError("rank 0 is lost"));
      core.Resume(engine.MakeWorkers(Epoch{6}), {});
    });
    EXPECT_LE(run.computed, 2 * (kPrefix + 40 * (kTail + kBlock)));
    EXPECT_EQ(run.tokens, wanted);
  }
}

// Too few blocks for all of them at a time.
TEST(EnginePrefixTest, TheSameTokensWithPreemptions) {
  SimulatedEngine engine = Engine(64, 32);
  std::vector<Request> requests = Storm(24, 300, kTail);
  for (Request& request : requests) request.sampling.max_tokens = 120;
  const auto wanted = WithoutCache(engine, requests);
  engine.config.kv_cache.groups[0].num_blocks = 60;
  const Outcome run = RunAll(engine, requests);
  EXPECT_GT(run.stats.preemptions, 0);
  EXPECT_EQ(run.tokens, wanted);
}

TEST(EnginePrefixTest, SaltsAreApart) {
  std::vector<Request> requests = Storm(10, kPrefix, kTail);
  for (size_t i = 0; i < 5; ++i) requests[i].cache_salt = "a";
  const Outcome run = RunAll(Engine(8192), std::move(requests));
  EXPECT_GE(run.computed, 2 * kPrefix);
  EXPECT_LE(run.computed, 2 * kPrefix + 10 * (kTail + kBlock));
}

}  // namespace
}  // namespace tandem::coordinator
