// The stored logits and greedy tokens of the reference models, through real worker processes: every
// kernel set, tensor-parallel size and step transport. The one test that covers the whole path from
// file to token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "kernels/factory.h"
#include "tests/cluster/golden_run.h"
#include "tests/common/config/named.h"

namespace tandem::testing {
namespace {

bool MachineHas(const std::string& kernels) {
  return kernels::MakeBackend({.cpu_kernels = Named<config::CpuKernels>(kernels), .threads = 1})
      .ok();
}

// Model, kernels, ranks, transport.
using Parameters = std::tuple<std::string, std::string, int, std::string>;

class ArchGoldenTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [name, kernels, ranks, transport] = GetParam();
    if (!MachineHas(kernels)) GTEST_SKIP() << "this machine has no " << kernels;
    run_.emplace(Read(name));
    run_->options.worker.device.cpu_kernels = Named<config::CpuKernels>(kernels);
    run_->options.cluster.tensor_parallel_size = ranks;
    run_->options.worker.transport.step_transport = Named<config::StepTransport>(transport);
  }

  virtual GoldenModel Read(const std::string& name) const { return ReadArchGolden(name); }

  // For docs/fidelity.md.
  void TearDown() override {
    if (!run_.has_value() || run_->largest_diff() < 0) return;
    const auto& [name, kernels, ranks, transport] = GetParam();
    std::printf("largest difference: %s %s TP %d %s: %.1e\n", name.c_str(), kernels.c_str(), ranks,
                run_->options.worker.model.expert_parallel ? "whole experts" : "",
                run_->largest_diff());
  }

  std::optional<GoldenRun> run_;
};

TEST_P(ArchGoldenTest, LogitsAndGreedyTokens) { run_->CheckLogits(); }

TEST_P(ArchGoldenTest, GreedyTokensWithF16Cache) {
  run_->options.worker.cache.kv_cache_type = tensor::Type::kF16;
  run_->options.worker.cache.block_size = 8;
  run_->options.worker.cache.num_kv_blocks = 128;
  run_->CheckGreedy();
}

// Experts given out whole instead of by columns.
class ExpertParallelGoldenTest : public ArchGoldenTest {};

TEST_P(ExpertParallelGoldenTest, LogitsAndGreedyTokens) {
  run_->options.worker.model.expert_parallel = true;
  run_->options.worker.cache.block_size = 8;
  run_->CheckLogits();
}

// With the draft head loaded, which takes a layer of the KV cache, the model computes the same.
class DraftHeadLoadedGoldenTest : public ArchGoldenTest {};

TEST_P(DraftHeadLoadedGoldenTest, LogitsAndGreedyTokens) {
  run_->options.worker.model.spec.load_draft_head = true;
  run_->CheckLogits();
}

// The model with a LoRA adapter.
class LoraGoldenTest : public ArchGoldenTest {
 protected:
  GoldenModel Read(const std::string& name) const override { return ReadLoraGolden(name); }
};

TEST_P(LoraGoldenTest, LogitsAndGreedyTokens) { run_->CheckLogits(); }

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
      {"gemma3", {1, 2, 4}},
      {"gemma4", {1, 2}},
      {"gemma4-dense", {1, 2}},
      {"gemma4-moe", {1, 2}},
      {"qwen35", {1, 2}},
      {"qwen35-pattern", {1, 2}},
      {"qwen35moe", {1, 2}},
      {"qwen35moe-fused", {1, 2}},
      {"qwen35-mtp", {1, 2}},
      {"qwen35moe-mtp", {1, 2}},
      {"qwen3next", {1, 2}},
      {"qwen3next-legacy", {1, 2}},
      {"smollm3", {1, 2, 4}},
      {"mistral3", {1, 2, 4}},
      {"glm4moe", {1, 2, 4}},
      {"glm4moe-mtp", {1, 2, 4}},
      {"minimax-m2", {1, 2, 4}},
      {"llama4", {1, 2, 4}},
      {"llama4-chunk", {1, 2, 4}}};
  // The transports carry the same bytes for every model.
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

std::vector<Parameters> LoraParameters() {
  const std::vector<std::pair<std::string, std::vector<int>>> models = {
      {"llama", {1, 2, 4}}, {"qwen2", {1, 2, 3}}, {"phi3", {1, 2, 4}}};
  std::vector<Parameters> all;
  for (const auto& [name, sizes] : models) {
    for (const char* kernels : {"reference", "avx2", "avx512"}) {
      for (int ranks : sizes) all.emplace_back(name, kernels, ranks, "shm");
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, LoraGoldenTest, ::testing::ValuesIn(LoraParameters()), TestName);

std::vector<Parameters> MixtureParameters() {
  std::vector<Parameters> all;
  for (const char* name : {"llama-moe", "qwen2moe", "qwen3moe", "deepseek2-lite", "deepseek2-v3",
                           "gpt-oss", "glm4moe", "minimax-m2", "llama4"}) {
    for (const char* kernels : {"reference", "avx512"}) {
      for (int ranks : {2, 4}) all.emplace_back(name, kernels, ranks, "shm");
    }
  }
  all.emplace_back("gemma4-moe", "avx512", 2, "shm");
  all.emplace_back("qwen35moe", "avx512", 2, "shm");
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, DraftHeadLoadedGoldenTest,
                         ::testing::Combine(::testing::Values("qwen35moe-mtp", "glm4moe-mtp"),
                                            ::testing::Values("avx2"), ::testing::Values(2),
                                            ::testing::Values("shm")),
                         TestName);

INSTANTIATE_TEST_SUITE_P(Models, ExpertParallelGoldenTest, ::testing::ValuesIn(MixtureParameters()),
                         TestName);

}  // namespace
}  // namespace tandem::testing
