// On the CPU a request's logits have the same bits regardless of: other requests, prefix cache,
// block size, chunking, threads, preemption, steps in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>

#include "coordinator/startup/model_file.h"
#include "kernels/factory.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"
#include "tests/common/config/named.h"

namespace tandem::testing {
namespace {

constexpr uint32_t kNewTokens = 24;

// The request under test: a prompt of 70 tokens, sampled, so that one bit off soon shows in the
// tokens too.
std::vector<TokenId> TestPrompt() { return RandomPrompt(1, 70); }

coordinator::Sampling TestSampling() {
  coordinator::Sampling sampling;
  sampling.temperature = 0.9f;
  sampling.top_p = 0.95f;
  sampling.max_tokens = kNewTokens;
  sampling.seed = 7;
  return sampling;
}

// Every penalty, DRY, bans, a bias, typical_p and XTC.
coordinator::Sampling AdjustedSampling() {
  coordinator::Sampling sampling = TestSampling();
  sampling.typical_p = 0.9f;
  sampling.xtc_probability = 0.5f;
  sampling.xtc_threshold = 0.02f;
  sampling.penalties.frequency = 0.5f;
  sampling.penalties.presence = 0.25f;
  sampling.penalties.repetition = 1.3f;
  sampling.penalties.window = 50;
  sampling.penalties.dry_multiplier = 2;
  sampling.penalties.dry_allowed_length = 1;
  sampling.logit_bias = {{11, 3.0f}, {200, 2.0f}};
  sampling.banned_sequences = {{12}, {11, 200}};
  return sampling;
}

// A model of tests/golden. `windowed`: some of its layers see a window that is far shorter than the
// request under test, so that blocks are given back and hits lack them; `all_windowed`: all do.
struct Model {
  const char* name;
  const char* path;
  bool windowed;
  bool all_windowed;
};

// The most tokens of the request under test, of 70, that a hit can have.
constexpr uint32_t kCacheable = 64;

constexpr Model kQ4KM = {"Q4_K_M", "quant/models/Q4_K_M.gguf", false, false};
constexpr Model kGptOss = {"gpt_oss", "arch/gpt-oss/model.gguf", true, false};
constexpr Model kGemma3 = {"gemma3", "arch/gemma3/model.gguf", true, false};
constexpr Model kGemma4 = {"gemma4", "arch/gemma4/model.gguf", true, false};
constexpr Model kLlama4 = {"llama4_chunk", "arch/llama4-chunk/model.gguf", true, false};
constexpr Model kPhi3 = {"phi3_swa", "arch/phi3-partial-swa/model.gguf", true, true};

// Recurrent states.
constexpr Model kQwen35 = {"qwen35", "arch/qwen35-pattern/model.gguf", false, false};

// Model, kernels, ranks.
using Parameters = std::tuple<Model, std::string, int>;

class BitIdentityTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [model, kernels, ranks] = GetParam();
    if (!kernels::MakeBackend({.cpu_kernels = Named<config::CpuKernels>(kernels), .threads = 1})
             .ok()) {
      GTEST_SKIP() << "this machine has no " << kernels;
    }
    model_ = model;
    options_ = TestServerConfig(GoldenPath(model.path));
    options_.worker.device.cpu_kernels = Named<config::CpuKernels>(kernels);
    options_.cluster.tensor_parallel_size = ranks;
    options_.worker.cache.kv_cache_type = tensor::Type::kF16;
    options_.worker.limits.max_num_seqs = 40;
    options_.worker.limits.max_num_batched_tokens = 512;
    options_.worker.cache.num_kv_blocks = 512;
    options_.scheduling.enable_prefix_caching = false;
  }

  // Runs the request under test after `before` and together with what `beside` adds.
  Output Run(const config::ServerConfig& options, const std::function<void(EngineDriver&)>& before,
             const std::function<void(EngineDriver&)>& beside) {
    auto driver = EngineDriver::Start(options);
    EXPECT_TRUE(driver.ok()) << driver.status();
    if (!driver.ok()) return {};
    if (before) {
      before(**driver);
      EXPECT_TRUE((*driver)->RunAll().ok());
    }
    Output& output = (*driver)->Add(TestPrompt(), sampling_, /*want_logits=*/true);
    if (beside) beside(**driver);
    const absl::Status ran = (*driver)->RunAll();
    EXPECT_TRUE(ran.ok()) << ran;
    stats_ = (*driver)->Stats();
    EXPECT_EQ(stats_.free_blocks, stats_.total_blocks) << "blocks leaked";
    return output;
  }
  Output Alone(const config::ServerConfig& options) { return Run(options, {}, {}); }
  config::ServerConfig Caching() const {
    config::ServerConfig caching = options_;
    caching.scheduling.enable_prefix_caching = true;
    caching.worker.cache.state_snapshot_interval = 16;
    return caching;
  }

  void ExpectSameWhenPreempted(config::ServerConfig tiny);
  void ExpectSame(const Output& found, const Output& wanted, const std::string& what) {
    EXPECT_TRUE(found.status.ok()) << found.status;
    EXPECT_EQ(found.tokens, wanted.tokens) << what;
    ASSERT_EQ(found.logits.size(), wanted.logits.size()) << what;
    ASSERT_EQ(found.logits.size(), kNewTokens);
    for (size_t row = 0; row < found.logits.size(); ++row) {
      ASSERT_EQ(found.logits[row].size(), wanted.logits[row].size());
      EXPECT_EQ(std::memcmp(found.logits[row].data(), wanted.logits[row].data(),
                            found.logits[row].size() * sizeof(float)),
                0)
          << what << ": logits of token " << row << " differ";
    }
  }

  Model model_ = kQ4KM;
  config::ServerConfig options_;
  coordinator::Sampling sampling_ = TestSampling();  // of the request under test
  coordinator::EngineStats stats_;
};

TEST_P(BitIdentityTest, TheModelHasTheWindowsThatItIsHereFor) {
  const auto model = coordinator::OpenModelFile(options_.worker.model);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto& groups = model->spec.kv_groups;
  const auto windowed = std::count_if(groups.begin(), groups.end(), [](const auto& group) {
    return group.window_tokens > 0 && group.window_tokens <= 32;
  });
  EXPECT_EQ(windowed > 0, model_.windowed);
  EXPECT_EQ(static_cast<size_t>(windowed) == groups.size(), model_.all_windowed);
}

TEST_P(BitIdentityTest, InABatchOfOthers) {
  const Output alone = Alone(options_);
  const Output batched = Run(options_, {}, [](EngineDriver& driver) {
    for (uint32_t i = 0; i < 32; ++i) {
      coordinator::Sampling sampling = TestSampling();
      sampling.max_tokens = 1 + i % 30;
      sampling.seed = 100 + i;
      driver.Add(RandomPrompt(100 + i, 1 + (i * 37) % 120), sampling);
    }
  });
  ExpectSame(batched, alone, "32 others");
}

TEST_P(BitIdentityTest, WithACachedPrefix) {
  const Output alone = Alone(options_);
  const config::ServerConfig caching = Caching();
  ExpectSame(Alone(caching), alone, "cold cache");
  const Output warm =
      Run(caching, [](EngineDriver& driver) { driver.Add(TestPrompt(), TestSampling()); }, {});
  ExpectSame(warm, alone, "warm cache");
  EXPECT_EQ(warm.usage.cached_tokens, kCacheable);
}

// Chunks that end within blocks and windows, and hits at the ends of small blocks.
TEST_P(BitIdentityTest, WithACachedPrefixBlockSizesAndChunks) {
  const Output alone = Alone(options_);
  const auto longer = [](EngineDriver& driver) {
    std::vector<TokenId> prompt = TestPrompt();
    const std::vector<TokenId> more = RandomPrompt(2, 40);
    prompt.insert(prompt.end(), more.begin(), more.end());
    driver.Add(std::move(prompt), TestSampling());
  };
  for (uint32_t block_size : {8u, 16u}) {
    for (uint32_t chunk : {1u, 7u, 512u}) {
      config::ServerConfig caching = Caching();
      caching.worker.cache.block_size = block_size;
      caching.scheduling.chunked_prefill_size = chunk;
      const Output warm = Run(caching, longer, {});
      ExpectSame(
          warm, alone,
          "warm blocks of " + std::to_string(block_size) + ", chunks of " + std::to_string(chunk));
      EXPECT_EQ(warm.usage.cached_tokens, kCacheable);
    }
  }
}

TEST_P(BitIdentityTest, BlockSizesChunksAndThreads) {
  const Output alone = Alone(options_);
  for (uint32_t block_size : {8u, 256u}) {
    config::ServerConfig changed = options_;
    changed.worker.cache.block_size = block_size;
    ExpectSame(Alone(changed), alone, "block size " + std::to_string(block_size));
  }
  for (uint32_t chunk : {1u, 7u, 512u}) {
    config::ServerConfig changed = options_;
    changed.scheduling.chunked_prefill_size = chunk;
    ExpectSame(Alone(changed), alone, "chunks of " + std::to_string(chunk));
  }
  config::ServerConfig threads = options_;
  threads.worker.device.threads = 2;
  ExpectSame(Alone(threads), alone, "2 threads");
}

// How ranks exchange changes nothing either: sums are in rank order everywhere.
TEST_P(BitIdentityTest, OverTcp) {
  if (options_.cluster.tensor_parallel_size == 1) GTEST_SKIP() << "one rank exchanges nothing";
  const Output alone = Alone(options_);
  options_.worker.transport.collective_transport = config::CollectiveTransport::kTcp;
  ExpectSame(Alone(options_), alone, "over TCP");
}

void BitIdentityTest::ExpectSameWhenPreempted(config::ServerConfig tiny) {
  const Output alone = Alone(options_);
  // The request under test needs 6, its elders need as many; where all layers have a window, the
  // elders need 3 when they have passed it.
  tiny.worker.cache.num_kv_blocks = model_.all_windowed ? 8 : 12;
  const auto crowd = [](EngineDriver& driver) {
    for (uint32_t i = 0; i < 3; ++i) {
      coordinator::Sampling sampling = TestSampling();
      sampling.max_tokens = 60;
      driver.Add(RandomPrompt(200 + i, 40), sampling);
    }
  };
  auto driver = EngineDriver::Start(tiny);
  ASSERT_TRUE(driver.ok()) << driver.status();
  crowd(**driver);
  const Output& output = (*driver)->Add(TestPrompt(), sampling_, /*want_logits=*/true);
  crowd(**driver);
  const absl::Status ran = (*driver)->RunAll();
  ASSERT_TRUE(ran.ok()) << ran;
  stats_ = (*driver)->Stats();
  EXPECT_GT((*driver)->Stats().preemptions, 0);
  EXPECT_EQ((*driver)->Stats().free_blocks, (*driver)->Stats().total_blocks);
  ExpectSame(output, alone, "preempted");
}

TEST_P(BitIdentityTest, WhenPreempted) { ExpectSameWhenPreempted(options_); }

// All others overlap.
TEST_P(BitIdentityTest, WithoutOverlap) {
  const Output alone = Alone(options_);
  config::ServerConfig changed = options_;
  changed.scheduling.overlap = false;
  ExpectSame(Alone(changed), alone, "a step at a time");
  changed.scheduling.chunked_prefill_size = 7;
  ExpectSame(Alone(changed), alone, "a step at a time, chunks of 7");
  ExpectSameWhenPreempted(changed);
}

// So do tokens with adjusted logits: they differ from plain ones, and depend on nothing else.
TEST_P(BitIdentityTest, WithAdjustedLogits) {
  const Output plain = Alone(options_);
  sampling_ = AdjustedSampling();
  const Output alone = Alone(options_);
  EXPECT_NE(alone.tokens, plain.tokens);
  config::ServerConfig chunks = options_;
  chunks.scheduling.chunked_prefill_size = 7;
  ExpectSame(Alone(chunks), alone, "chunks of 7");
  ExpectSameWhenPreempted(options_);
}

// It continues where its own blocks, and snapshots of its state, are still cached.
TEST_P(BitIdentityTest, WhenPreemptedWithACachedPrefix) {
  ExpectSameWhenPreempted(Caching());
  EXPECT_GT(stats_.cached_tokens, 0) << "no prompt begins like another";
}

std::string TestName(const ::testing::TestParamInfo<Parameters>& param) {
  std::string name = std::get<0>(param.param).name + ("_" + std::get<1>(param.param)) + "_tp" +
                     std::to_string(std::get<2>(param.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, BitIdentityTest,
    ::testing::Combine(::testing::Values(kQ4KM, kGptOss, kGemma3, kPhi3, kQwen35),
                       ::testing::Values("reference", "avx2", "avx512"), ::testing::Values(1, 2)),
    TestName);
INSTANTIATE_TEST_SUITE_P(AvxVnni, BitIdentityTest,
                         ::testing::Combine(::testing::Values(kQ4KM),
                                            ::testing::Values("avx2-vnni"), ::testing::Values(2)),
                         TestName);
// Chunks differ from windows in what a row sees, which is the same for all kernels and ranks.
INSTANTIATE_TEST_SUITE_P(Chunks, BitIdentityTest,
                         ::testing::Combine(::testing::Values(kLlama4),
                                            ::testing::Values("reference", "avx512"),
                                            ::testing::Values(2)),
                         TestName);

// More than two ranks add large tensors part by part.
INSTANTIATE_TEST_SUITE_P(FourRanks, BitIdentityTest,
                         ::testing::Combine(::testing::Values(kQ4KM), ::testing::Values("avx2"),
                                            ::testing::Values(4)),
                         TestName);

// Layers that read the cache of others.
INSTANTIATE_TEST_SUITE_P(SharedCaches, BitIdentityTest,
                         ::testing::Combine(::testing::Values(kGemma4), ::testing::Values("avx512"),
                                            ::testing::Values(1, 2)),
                         TestName);

}  // namespace
}  // namespace tandem::testing
