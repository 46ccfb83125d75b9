// The reference models on the CUDA backend, through real worker processes: emulated ones, which any
// machine runs, or real ones, for GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>

#include "tests/cluster/cuda_worker.h"
#include "tests/cluster/divergence.h"
#include "tests/cluster/golden_run.h"

namespace tandem::testing {
namespace {

constexpr double kRmsRatio = 1.1;
constexpr double kMaxMeanKl = 3e-3;

// Model, ranks.
using Parameters = std::tuple<std::string, int>;

std::string TestName(const ::testing::TestParamInfo<Parameters>& info) {
  const auto& [name, ranks] = info.param;
  std::string text = name.substr(0, name.find('.')) + "_" + std::to_string(ranks);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

class CudaGoldenTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [name, ranks] = GetParam();
    const CudaWorker worker = FindCudaWorker(ranks);
    if (!worker.missing.empty()) GTEST_SKIP() << worker.missing;
    run_.emplace(Read(name));
    run_->options.worker.device.device = config::Device::kCuda;
    run_->options.cluster.worker_binary = worker.binary;
    run_->options.cluster.tensor_parallel_size = ranks;
  }

  virtual GoldenModel Read(const std::string& name) const { return ReadArchGolden(name); }

  void TearDown() override {
    if (!run_.has_value() || run_->largest_diff() < 0) return;
    const auto& [name, ranks] = GetParam();
    std::printf("largest difference: %s cuda TP %d: %.1e\n", name.c_str(), ranks,
                run_->largest_diff());
  }

  std::optional<GoldenRun> run_;
};

// With a LoRA adapter.
class CudaLoraGoldenTest : public CudaGoldenTest {
 protected:
  GoldenModel Read(const std::string& name) const override { return ReadLoraGolden(name); }
};

TEST_P(CudaLoraGoldenTest, LogitsAndGreedyTokens) { run_->CheckLogits(); }

INSTANTIATE_TEST_SUITE_P(Models, CudaLoraGoldenTest,
                         ::testing::Values(Parameters("llama", 2), Parameters("phi3", 1)),
                         TestName);

TEST_P(CudaGoldenTest, LogitsAndGreedyTokens) { run_->CheckLogits(); }

INSTANTIATE_TEST_SUITE_P(
    Models, CudaGoldenTest,
    ::testing::Combine(::testing::Values("llama", "llama-rope-freqs", "qwen2", "qwen3",
                                         "llama-yarn", "llama-moe", "qwen2moe", "qwen3moe", "gpt2",
                                         "phi3", "phi3-partial-swa", "deepseek2-lite",
                                         "deepseek2-v3", "deepseek2-v3-split", "gpt-oss", "gemma2",
                                         "gemma3", "gemma4", "gemma4-dense", "gemma4-moe",
                                         "mistral3", "minimax-m2", "llama4", "llama4-chunk",
                                         "smollm3", "glm4moe", "qwen35", "qwen35-pattern",
                                         "qwen35moe", "qwen35moe-fused", "qwen3next",
                                         "qwen3next-legacy"),
                       ::testing::Values(1, 2)),
    TestName);

// A dense model, a mixture, and one whose KV heads are fewer than the ranks.
INSTANTIATE_TEST_SUITE_P(FourRanks, CudaGoldenTest,
                         ::testing::Combine(::testing::Values("llama", "qwen3moe"),
                                            ::testing::Values(4)),
                         TestName);

// Pages of halves, which the tensor cores read: every kind of attention.
class CudaHalfPagesTest : public CudaGoldenTest {};

TEST_P(CudaHalfPagesTest, GreedyTokens) {
  run_->options.worker.cache.kv_cache_type = tensor::Type::kF16;
  run_->options.worker.cache.block_size = 8;
  run_->options.worker.cache.num_kv_blocks = 128;
  run_->CheckGreedy();
}

INSTANTIATE_TEST_SUITE_P(Models, CudaHalfPagesTest,
                         ::testing::Combine(::testing::Values("llama", "deepseek2-v3", "gpt-oss",
                                                              "gemma2", "phi3-partial-swa"),
                                            ::testing::Values(1)),
                         TestName);

// Quantised weights. Chunks of 5 tokens go through int8 products, longer ones through BF16.
class CudaQuantTest : public ::testing::TestWithParam<Parameters> {};  // file, chunk

TEST_P(CudaQuantTest, LogitsOfAllStoredPositions) {
  const auto& [file, chunk] = GetParam();
  const CudaWorker worker = FindCudaWorker(1);
  if (!worker.missing.empty()) GTEST_SKIP() << worker.missing;
  const GoldenModel golden = ReadQuantGolden(file);
  config::ServerConfig options = TestServerConfig(golden.path);
  options.worker.device.device = config::Device::kCuda;
  options.cluster.worker_binary = worker.binary;
  auto driver = WorkerDriver::Start(options);
  ASSERT_TRUE(driver.ok()) << driver.status();
  Divergence divergence;
  ASSERT_NO_FATAL_FAILURE(AddGolden(**driver, golden, static_cast<uint32_t>(chunk), divergence));
  std::printf("%s cuda chunks of %d: max %.4f rms %.5f (reference engine %.5f) mean KL %.2e\n",
              file.c_str(), chunk, divergence.max_abs, divergence.rms(), golden.reference_rms,
              divergence.mean_kl());
  EXPECT_LE(divergence.rms(), kRmsRatio * golden.reference_rms);
  EXPECT_LE(divergence.mean_kl(), kMaxMeanKl);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaQuantTest,
                         ::testing::Combine(::testing::Values("Q8_0.gguf", "Q4_0.gguf",
                                                              "Q4_K_M.gguf", "Q5_K_M.gguf",
                                                              "Q6_K.gguf"),
                                            ::testing::Values(256, 5)),
                         TestName);

}  // namespace
}  // namespace tandem::testing
