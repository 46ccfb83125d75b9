// Quantised forms of architectures that tests/golden/quant has no model of, against the same
// weights in F32: within 1e-3 where activations stay F32, and under the bar of those models where
// the kernels round activations to 8 bits. qwen3 and qwen3moe are there to compare with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cluster/divergence.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/wide_model.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

constexpr double kMaxAbsDiffF32 = 1e-3;
// The bar of the stored quantised models, which have two layers.
constexpr double kMaxMeanKlPerLayer = 3e-3 / 2;
constexpr TokenId kVocab = 323;

config::ServerConfig Options(const std::string& path, config::CpuKernels kernels, int ranks) {
  config::ServerConfig options = TestServerConfig(path);
  options.worker.device.cpu_kernels = kernels;
  options.cluster.tensor_parallel_size = ranks;
  return options;
}

// A prompt of 70 tokens with the logits of the weights in F32.
GoldenCase Expected(const std::string& path) {
  GoldenCase one;
  std::mt19937 random(3);
  for (int i = 0; i < 70; ++i) one.tokens.push_back(static_cast<TokenId>(random() % kVocab));
  for (int i = 5; i < 70; i += 8) one.positions.push_back(i);
  auto driver = WorkerDriver::Start(Options(path, config::CpuKernels::kReference, 1));
  EXPECT_TRUE(driver.ok()) << driver.status();
  if (!driver.ok()) return one;
  auto logits = (*driver)->Prefill(one.tokens, one.positions, 256);
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (logits.ok()) one.logits = *std::move(logits);
  return one;
}

// Golden model whose architecture it is, type.
using Parameters = std::tuple<std::string, tensor::Type>;

class QuantFamiliesTest : public ::testing::TestWithParam<Parameters> {};

TEST_P(QuantFamiliesTest, LogitsOfTheWeightsInF32) {
  const auto& [name, type] = GetParam();
  const WideModel files = WriteWideModel(name, type);
  const GoldenModel golden{.path = files.quantised, .cases = {Expected(files.dequantised)}};
  ASSERT_FALSE(golden.cases[0].logits.empty());
  for (const auto kernels : {config::CpuKernels::kReference, config::CpuKernels::kAuto}) {
    for (const int ranks : {1, 2}) {
      auto driver = WorkerDriver::Start(Options(files.quantised, kernels, ranks));
      ASSERT_TRUE(driver.ok()) << driver.status();
      Divergence divergence;
      ASSERT_NO_FATAL_FAILURE(AddGolden(**driver, golden, /*chunk=*/32, divergence));
      const bool exact = kernels == config::CpuKernels::kReference;
      std::printf("%s %s %s TP %d: max %.1e rms %.4f mean KL %.1e, %u layers\n", name.c_str(),
                  tensor::Name(type).data(), exact ? "scalar" : "SIMD", ranks, divergence.max_abs,
                  divergence.rms(), divergence.mean_kl(), files.num_layers);
      if (exact) {
        EXPECT_LE(divergence.max_abs, kMaxAbsDiffF32);
      } else {
        EXPECT_LE(divergence.mean_kl(), kMaxMeanKlPerLayer * files.num_layers);
      }
    }
  }
}

std::string NameOf(const ::testing::TestParamInfo<Parameters>& param) {
  std::string name =
      std::get<0>(param.param) + "_" + std::string(tensor::Name(std::get<1>(param.param)));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, QuantFamiliesTest,
    ::testing::Combine(::testing::Values("qwen3", "qwen3moe", "qwen35", "qwen35moe-fused",
                                         "qwen3next", "qwen3next-legacy", "gemma4", "gemma4-moe",
                                         "glm4moe", "minimax-m2", "llama4", "mistral3"),
                       ::testing::Values(tensor::Type::kQ8_0, tensor::Type::kQ4_K)),
    NameOf);

// Types that no stored model has.
INSTANTIATE_TEST_SUITE_P(
    Types, QuantFamiliesTest,
    ::testing::Combine(::testing::Values("qwen3", "qwen3moe"),
                       ::testing::Values(tensor::Type::kIQ1_S, tensor::Type::kIQ1_M,
                                         tensor::Type::kIQ2_XXS, tensor::Type::kIQ2_XS,
                                         tensor::Type::kIQ2_S, tensor::Type::kIQ3_XXS,
                                         tensor::Type::kIQ3_S, tensor::Type::kTQ1_0,
                                         tensor::Type::kTQ2_0, tensor::Type::kQ1_0,
                                         tensor::Type::kQ2_0)),
    NameOf);

// Scales beside matrices: whole, of parts of a tensor, scattered, of experts, and names that mean
// something else.
INSTANTIATE_TEST_SUITE_P(Scales, QuantFamiliesTest,
                         ::testing::Combine(::testing::Values("qwen3", "qwen3moe", "qwen35",
                                                              "qwen35moe-fused", "gemma4-moe",
                                                              "gpt-oss"),
                                            ::testing::Values(tensor::Type::kNVFP4)),
                         NameOf);

}  // namespace
}  // namespace tandem::testing
