// The stored logits and greedy tokens of the reference models, through real worker processes: every
// kernel set, tensor-parallel size and step transport. The one test that covers the whole path from
// file to token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <tuple>

#include "kernels/factory.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

constexpr double kMaxAbsDiff = 1e-3;

double MaxAbsDiff(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double diff = std::fabs(double{a[i]} - double{b[i]});
    if (!(diff <= most)) most = diff;  // a NaN counts
  }
  return most;
}

bool MachineHas(const std::string& kernels) {
  return kernels::MakeBackend({.device = "cpu", .cpu_kernels = kernels, .threads = 1}).ok();
}

// Model, kernels, ranks, transport.
using Parameters = std::tuple<std::string, std::string, int, std::string>;

class ArchGoldenTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [name, kernels, ranks, transport] = GetParam();
    if (!MachineHas(kernels)) GTEST_SKIP() << "this machine has no " << kernels;
    golden_ = ReadArchGolden(name);
    options_ = TestWorkerOptions(golden_.path);
    options_.cpu_kernels = kernels;
    options_.tensor_parallel_size = ranks;
    options_.step_transport = transport;
  }

  // Every stored logit, prefilled at once and in chunks of 5, and the greedy continuation.
  void CheckLogits(uint32_t block_size) {
    options_.block_size = block_size;
    auto driver = WorkerDriver::Start(options_);
    ASSERT_TRUE(driver.ok()) << driver.status();
    for (const GoldenCase& one : golden_.cases) {
      for (uint32_t chunk : {256u, 5u}) CheckPrefill(**driver, one, chunk);
      auto tokens = GreedyTokens(**driver, one.tokens, one.greedy.size());
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(*tokens, one.greedy) << "prompt of " << one.tokens.size() << " tokens";
    }
  }

  void CheckPrefill(WorkerDriver& driver, const GoldenCase& one, uint32_t chunk) {
    driver.Reset();
    auto logits = driver.Prefill(one.tokens, one.positions, chunk);
    ASSERT_TRUE(logits.ok()) << logits.status();
    ASSERT_EQ(logits->size(), one.logits.size());
    for (size_t row = 0; row < logits->size(); ++row) {
      const double diff = MaxAbsDiff((*logits)[row], one.logits[row]);
      largest_diff_ = std::max(largest_diff_, diff);
      EXPECT_LE(diff, kMaxAbsDiff) << "position " << one.positions[row] << " of "
                                   << one.tokens.size() << " tokens, chunks of " << chunk;
    }
  }

  void CheckGreedy() {
    auto driver = WorkerDriver::Start(options_);
    ASSERT_TRUE(driver.ok()) << driver.status();
    for (const GoldenCase& one : golden_.cases) {
      auto tokens = GreedyTokens(**driver, one.tokens, one.greedy.size());
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(*tokens, one.greedy) << "prompt of " << one.tokens.size() << " tokens";
    }
  }

  // For docs/fidelity.md.
  void TearDown() override {
    if (largest_diff_ < 0) return;
    const auto& [name, kernels, ranks, transport] = GetParam();
    std::printf("largest difference: %s %s TP %d %s: %.1e\n", name.c_str(), kernels.c_str(), ranks,
                options_.expert_parallel ? "whole experts" : "", largest_diff_);
  }

  GoldenModel golden_;
  coordinator::WorkerOptions options_;
  double largest_diff_ = -1;
};

TEST_P(ArchGoldenTest, LogitsAndGreedyTokens) { CheckLogits(/*block_size=*/16); }

TEST_P(ArchGoldenTest, GreedyTokensWithF16Cache) {
  options_.kv_cache_type = "f16";
  options_.block_size = 8;
  options_.num_kv_blocks = 128;
  CheckGreedy();
}

// Experts given out whole instead of by columns.
class ExpertParallelGoldenTest : public ArchGoldenTest {};

TEST_P(ExpertParallelGoldenTest, LogitsAndGreedyTokens) {
  options_.expert_parallel = true;
  CheckLogits(/*block_size=*/8);
}

std::vector<Parameters> AllParameters() {
  // Tensor-parallel sizes from 1 to 4 that divide the query heads.
  const std::vector<std::pair<std::string, std::vector<int>>> models = {
      {"llama", {1, 2, 4}},
      {"llama-rope-freqs", {1, 2, 4}},
      {"qwen2", {1, 2, 3}},
      {"qwen3", {1, 2, 4}},
      {"llama-yarn", {1, 2, 3}},
      {"llama-moe", {1, 2, 4}},
      {"qwen2moe", {1, 2, 4}},
      {"qwen3moe", {1, 2, 4}},
      {"gpt2", {1, 2, 4}},
      {"phi3", {1, 2, 4}},
      {"phi3-partial-swa", {1, 2, 4}},
      {"deepseek2-lite", {1, 2, 4}},
      {"deepseek2-v3", {1, 2, 4}},
      {"deepseek2-v3-split", {1, 2, 4}},
      {"gpt-oss", {1, 2, 4}},
      {"gemma2", {1, 2, 4}},
      {"gemma3", {1, 2, 4}}};
  // The transports carry the same bytes whatever the model is.
  const std::set<std::string> over_both = {"llama", "qwen2"};
  std::vector<Parameters> all;
  for (const auto& [name, sizes] : models) {
    for (const char* kernels : {"reference", "avx2", "avx512"}) {
      for (int ranks : sizes) {
        all.emplace_back(name, kernels, ranks, "shm");
        if (over_both.contains(name)) all.emplace_back(name, kernels, ranks, "grpc");
      }
    }
  }
  return all;
}

std::string TestName(const ::testing::TestParamInfo<Parameters>& info) {
  const auto& [name, kernels, ranks, transport] = info.param;
  std::string text = name + "_" + kernels + "_tp" + std::to_string(ranks) + "_" + transport;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Models, ArchGoldenTest, ::testing::ValuesIn(AllParameters()), TestName);

std::vector<Parameters> MixtureParameters() {
  std::vector<Parameters> all;
  for (const char* name :
       {"llama-moe", "qwen2moe", "qwen3moe", "deepseek2-lite", "deepseek2-v3", "gpt-oss"}) {
    for (const char* kernels : {"reference", "avx512"}) {
      for (int ranks : {2, 4}) all.emplace_back(name, kernels, ranks, "shm");
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertParallelGoldenTest, ::testing::ValuesIn(MixtureParameters()),
                         TestName);

}  // namespace
}  // namespace tandem::testing
