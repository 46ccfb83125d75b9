// The reference models on the CUDA backend, through real worker processes: emulated ones, which any
// machine runs, or real ones, for GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>

#include "tests/cluster/cuda_worker.h"
#include "tests/cluster/golden_run.h"

namespace tandem::testing {
namespace {

// Model, ranks.
using Parameters = std::tuple<std::string, int>;

class CudaGoldenTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [name, ranks] = GetParam();
    const CudaWorker worker = FindCudaWorker(ranks);
    if (!worker.missing.empty()) GTEST_SKIP() << worker.missing;
    run_.emplace(ReadArchGolden(name));
    run_->options.device = "cuda";
    run_->options.worker_binary = worker.binary;
    run_->options.tensor_parallel_size = ranks;
  }

  void TearDown() override {
    if (!run_.has_value() || run_->largest_diff() < 0) return;
    const auto& [name, ranks] = GetParam();
    std::printf("largest difference: %s cuda TP %d: %.1e\n", name.c_str(), ranks,
                run_->largest_diff());
  }

  std::optional<GoldenRun> run_;
};

TEST_P(CudaGoldenTest, LogitsAndGreedyTokens) { run_->CheckLogits(); }

std::string TestName(const ::testing::TestParamInfo<Parameters>& info) {
  const auto& [name, ranks] = info.param;
  std::string text = name + "_tp" + std::to_string(ranks);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaGoldenTest,
    ::testing::Combine(::testing::Values("llama", "llama-rope-freqs", "qwen2", "qwen3",
                                         "llama-yarn", "llama-moe", "qwen2moe", "qwen3moe", "gpt2",
                                         "phi3", "phi3-partial-swa", "deepseek2-lite",
                                         "deepseek2-v3", "deepseek2-v3-split", "gpt-oss", "gemma2",
                                         "gemma3"),
                       ::testing::Values(1, 2)),
    TestName);

}  // namespace
}  // namespace tandem::testing
