// The whole coordinator in one thread, from a seed: random requests come and go on an engine with
// far too few blocks, whose workers are lost in every way that a step can fail, and after every
// step each block is accounted for. In the end every request must have drawn exactly the tokens
// that it draws alone on an engine with room for everything, without prefix cache and in one chunk;
// and all blocks are free.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

struct SimulatedClient {
  Request request;  // without stream
  std::shared_ptr<RecordingStream> stream;
  uint64_t handle = 0;
  bool cancelled = false;
};

// What the clients do.
class Workload {
 public:
  Workload(uint64_t seed, uint32_t max_model_len) : random_(seed), max_model_len_(max_model_len) {
    for (int i = 0; i < 3; ++i) {
      roots_.emplace_back(max_model_len);
      for (TokenId& token : roots_.back()) token = static_cast<TokenId>(random_() % 97);
    }
  }

  bool Chance(uint32_t percent) { return random_() % 100 < percent; }
  size_t Below(size_t bound) { return random_() % bound; }

  SimulatedClient NewClient() {
    SimulatedClient client;
    Request& request = client.request;
    request.id = std::to_string(++num_clients_);
    const size_t prompt_len = 1 + Below(max_model_len_ * 2 / 3);
    // Most prompts begin like one of the roots, many to a block's end or one token off it.
    const std::vector<TokenId>& root = roots_[Below(roots_.size())];
    size_t shared = Chance(75) ? Below(prompt_len + 1) : 0;
    if (Chance(50)) shared = std::min(prompt_len, shared / 8 * 8 + Below(2));
    request.prompt.assign(root.begin(), root.begin() + shared);
    while (request.prompt.size() < prompt_len) {
      request.prompt.push_back(static_cast<TokenId>(random_() % 97));
    }
    // Blocks with the same tokens after another prefix.
    if (Chance(25)) request.prompt[0] = static_cast<TokenId>(random_() % 97);
    Sampling& sampling = request.sampling;
    sampling.temperature = Chance(50) ? 0.0f : 0.8f;
    sampling.seed = random_();
    sampling.max_tokens = 1 + static_cast<uint32_t>(Below(max_model_len_ - prompt_len));
    for (TokenId id = 0; id < 97; ++id) {
      if (Chance(1)) sampling.end_ids.push_back(id);
    }
    if (Chance(30)) sampling.min_tokens = static_cast<uint32_t>(Below(20));
    if (Chance(20)) sampling.penalties.frequency = 0.5f;  // no step may refer to its tokens
    if (Chance(20)) sampling.logprobs = static_cast<uint32_t>(Below(4));
    if (Chance(20)) sampling.prompt_logprobs = static_cast<uint32_t>(Below(4));
    client.stream = std::make_shared<RecordingStream>(Chance(10) ? 1 + Below(10) : SIZE_MAX);
    return client;
  }

 private:
  std::mt19937_64 random_;
  const uint32_t max_model_len_;
  std::vector<std::vector<TokenId>> roots_;
  uint64_t num_clients_ = 0;
};

enum class Groups { kFull, kFullAndWindow, kWindow };

struct SimParams {
  uint32_t block_size;
  uint32_t chunk;
  bool prefix_cache;
  Groups groups;
  SchedulingPolicy policy;
  uint64_t seed;
  uint32_t depth = 2;   // of the pipeline
  bool losses = false;  // of the workers, every few steps
};

std::string Name(const SimParams& p) {
  const char* const groups = p.groups == Groups::kFull            ? "OneGroup"
                             : p.groups == Groups::kFullAndWindow ? "TwoGroups"
                                                                  : "OneWindow";
  return "Block" + std::to_string(p.block_size) + "Chunk" + std::to_string(p.chunk) +
         (p.prefix_cache ? "Cache" : "NoCache") + groups +
         (p.policy == SchedulingPolicy::kDecodeFirst ? "DecodeFirst" : "PrefillFirst") + "Seed" +
         std::to_string(p.seed) + (p.depth != 2 ? "Depth" + std::to_string(p.depth) : "") +
         (p.losses ? "Losses" : "");
}

std::vector<SimParams> AllParams() {
  std::vector<SimParams> all;
  for (uint32_t block_size : {8u, 16u, 256u}) {
    for (uint32_t chunk : {1u, 7u, 512u}) {
      for (bool prefix_cache : {false, true}) {
        for (Groups groups : {Groups::kFull, Groups::kFullAndWindow, Groups::kWindow}) {
          for (uint64_t seed = 1; seed <= 4; ++seed) {
            all.push_back({.block_size = block_size,
                           .chunk = chunk,
                           .prefix_cache = prefix_cache,
                           .groups = groups,
                           .policy = seed % 2 ? SchedulingPolicy::kDecodeFirst
                                              : SchedulingPolicy::kPrefillFirst,
                           .seed = seed});
          }
          // Without overlap, or with more of it.
          all.push_back(all.back());
          all.back().depth = 1 + 2 * (all.size() % 2);
          all.push_back(all[all.size() - 1 - all.size() % 2]);
          all.back().losses = true;
        }
      }
    }
  }
  return all;
}

class EngineSimTest : public testing::TestWithParam<SimParams> {
 protected:
  static constexpr uint32_t kWindow = 21;

  // By the seed: just enough blocks for the longest request, or a few times that.
  static SimulatedEngine Scarce(const SimParams& p) {
    SimulatedEngine engine = SimulatedEngine::Small();
    const uint32_t max_model_len = p.block_size == 256 ? 600 : 120;
    engine.config.scheduler = {.max_num_seqs = 6,
                               .max_num_batched_tokens = std::max(20u, p.chunk + 3),
                               .chunked_prefill_size = p.chunk,
                               .max_model_len = max_model_len,
                               .policy = p.policy};
    engine.config.pipeline_depth = p.depth;
    KvCacheConfig& kv = engine.config.kv_cache;
    kv.block_size = p.block_size;
    kv.enable_prefix_cache = p.prefix_cache;
    kv.groups.clear();
    if (p.groups != Groups::kWindow) kv.groups.push_back({.num_blocks = 0, .window_tokens = 0});
    if (p.groups != Groups::kFull) kv.groups.push_back({.num_blocks = 0, .window_tokens = kWindow});
    for (KvGroup& group : kv.groups) {
      const uint32_t step_tokens = engine.config.scheduler.MostStepTokens();
      const uint32_t least = kv.MostBlocks(group, max_model_len, step_tokens);
      // Windows are small: with room for several of them the full group is the scarce one. Where
      // there is no other, the window is.
      const uint32_t share = group.window_tokens == 0             ? 1
                             : p.groups == Groups::kFullAndWindow ? 4
                                                                  : 2;
      group.num_blocks = least + least * share * static_cast<uint32_t>(p.seed - 1) / 2;
    }
    return engine;
  }

  static SimulatedEngine Ample(const SimParams& p) {
    SimulatedEngine engine = Scarce(p);
    engine.ranks = 1;
    engine.config.pipeline_depth = 1;
    engine.config.scheduler.max_num_batched_tokens = 1024;
    engine.config.scheduler.chunked_prefill_size = 1024;
    engine.config.kv_cache.enable_prefix_cache = false;
    engine.config.kv_cache.block_size = 16;
    for (KvGroup& group : engine.config.kv_cache.groups) group.num_blocks = 64;
    return engine;
  }

  // Faults of every kind, at any rank, from some step on: what does no harm is followed by more.
  static std::vector<SimulatedScript> DrawFaults(Workload& workload) {
    std::vector<SimulatedScript> scripts(2);
    for (uint64_t step = 1; step < 1000; step += 1 + workload.Below(12)) {
      const auto kind = static_cast<SimulatedFault>(workload.Below(9));
      scripts[workload.Below(2)].faults[step + workload.Below(12)] = kind;
    }
    return scripts;
  }

  // With losses, a step may fail; then other workers, which will fail too, take over.
  void CheckedStep(SimulatedEngine& engine, Workload& workload, EngineCore& core) {
    if (const absl::Status status = core.Step(); !status.ok()) {
      ASSERT_TRUE(GetParam().losses) << status;
      ASSERT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      core.Rewind(status);
      ++num_losses_;
      EXPECT_EQ(core.Stats().free_blocks, core.Stats().total_blocks);
      EXPECT_EQ(core.Stats().cached_blocks, 0);
      engine.scripts = DrawFaults(workload);
      core.Resume(engine.MakeWorkers(Epoch{++epoch_}), {});
    }
    const absl::Status integrity = core.CheckIntegrity();
    ASSERT_TRUE(integrity.ok()) << integrity;
  }

  static RecordingStream::Record RunAlone(const SimParams& p, Request request) {
    auto stream = std::make_shared<RecordingStream>();
    request.stream = stream;
    auto core = Ample(p).Make();
    core->Add(std::move(request), 1);
    while (!core->idle()) {
      if (absl::Status status = core->Step(); !status.ok()) {
        ADD_FAILURE() << status;
        break;
      }
    }
    return stream->record();
  }

  void Arrive(EngineCore& core, Workload& workload) {
    clients_.push_back(workload.NewClient());
    SimulatedClient& client = clients_.back();
    client.handle = clients_.size();
    Request request = client.request;
    request.stream = client.stream;
    core.Add(std::move(request), client.handle);
  }

  static void CheckClient(const SimParams& p, const SimulatedClient& client) {
    const auto record = client.stream->record();
    const auto alone = RunAlone(p, client.request);
    ASSERT_EQ(record.num_ends, 1) << "request " << client.request.id;
    ASSERT_LE(record.tokens.size(), alone.tokens.size());
    EXPECT_TRUE(std::equal(record.tokens.begin(), record.tokens.end(), alone.tokens.begin()))
        << "request " << client.request.id;
    const auto begins_alike = [](const auto& part, const auto& whole) {
      return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
    };
    // Each once and in order, also when the request was preempted half-way.
    EXPECT_TRUE(begins_alike(record.prompt_logprobs, alone.prompt_logprobs))
        << "request " << client.request.id;
    EXPECT_TRUE(begins_alike(record.logprobs, alone.logprobs)) << "request " << client.request.id;
    const size_t scored =
        client.request.sampling.prompt_logprobs ? client.request.prompt.size() - 1 : 0;
    if (!record.tokens.empty()) {
      EXPECT_EQ(record.prompt_logprobs.size(), scored) << "request " << client.request.id;
    }
    if (record.reason == FinishReason::kStop || record.reason == FinishReason::kLength) {
      EXPECT_EQ(record.tokens, alone.tokens) << "request " << client.request.id;
      EXPECT_EQ(record.logprobs.size(),
                client.request.sampling.logprobs ? record.tokens.size() : 0);
      EXPECT_EQ(record.reason, alone.reason);
      EXPECT_EQ(record.usage.completion_tokens, alone.usage.completion_tokens);
    }
    if (!p.prefix_cache) {
      EXPECT_EQ(record.usage.cached_tokens, 0u);
    }
  }

  // The suite must preempt and hit at least once, for all groups.
  static void TearDownTestSuite() {
    if (num_runs_ < AllParams().size()) return;  // filtered
    for (int groups = 0; groups < 3; ++groups) {
      EXPECT_GT(num_preemptions_[groups], 50) << groups;
      EXPECT_GT(num_cached_tokens_[groups], 200) << groups;
    }
    EXPECT_GT(num_losses_, 500);
  }

  static inline size_t num_runs_ = 0;
  static inline int64_t num_preemptions_[3] = {};  // by Groups
  static inline int64_t num_cached_tokens_[3] = {};
  static inline int64_t num_losses_ = 0;

  SimulatedClock clock_;  // a worker that hangs costs no time
  uint64_t epoch_ = 5;
  std::vector<SimulatedClient> clients_;
};

TEST_P(EngineSimTest, EveryRequestGetsTheTokensOfRunningAlone) {
  const SimParams& p = GetParam();
  SimulatedEngine engine = Scarce(p);
  engine.clock = &clock_;
  Workload workload(p.seed * 1000 + p.block_size + p.chunk, engine.config.scheduler.max_model_len);
  if (p.losses) engine.scripts = DrawFaults(workload);
  auto core = engine.Make();
  constexpr size_t kClients = 24;
  for (int step = 0; clients_.size() < kClients || !core->idle(); ++step) {
    ASSERT_LT(step, 200000) << "the engine does not come to an end";
    while (clients_.size() < kClients && workload.Chance(25)) Arrive(*core, workload);
    if (workload.Chance(2) && !clients_.empty()) {
      core->Cancel(clients_[workload.Below(clients_.size())].handle);
    }
    ASSERT_NO_FATAL_FAILURE(CheckedStep(engine, workload, *core));
  }
  EXPECT_EQ(core->Stats().free_blocks, core->Stats().total_blocks);
  if (!p.prefix_cache) {
    EXPECT_EQ(core->Stats().cached_blocks, 0);
  }
  const int groups = static_cast<int>(p.groups);
  num_preemptions_[groups] += core->Stats().preemptions;
  ++num_runs_;
  for (const SimulatedClient& client : clients_) {
    ASSERT_NO_FATAL_FAILURE(CheckClient(p, client));
    num_cached_tokens_[groups] += client.stream->record().usage.cached_tokens;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSimTest, testing::ValuesIn(AllParams()),
                         [](const auto& test) { return Name(test.param); });

}  // namespace
}  // namespace tandem::coordinator
