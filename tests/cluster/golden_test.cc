// The stored logits and greedy tokens of the reference models, through real worker processes: every
// kernel set, tensor-parallel size and step transport. The one test that covers the whole path from
// file to token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

  void CheckGreedy() {
    auto driver = WorkerDriver::Start(options_);
    ASSERT_TRUE(driver.ok()) << driver.status();
    for (const GoldenCase& one : golden_.cases) {
      auto tokens = GreedyTokens(**driver, one.tokens, one.greedy.size());
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(*tokens, one.greedy) << "prompt of " << one.tokens.size() << " tokens";
    }
  }

  GoldenModel golden_;
  coordinator::WorkerOptions options_;
};

TEST_P(ArchGoldenTest, LogitsAndGreedyTokens) {
  auto driver = WorkerDriver::Start(options_);
  ASSERT_TRUE(driver.ok()) << driver.status();
  for (const GoldenCase& one : golden_.cases) {
    for (uint32_t chunk : {256u, 5u}) {
      (*driver)->Reset();
      auto logits = (*driver)->Prefill(one.tokens, one.positions, chunk);
      ASSERT_TRUE(logits.ok()) << logits.status();
      ASSERT_EQ(logits->size(), one.logits.size());
      for (size_t row = 0; row < logits->size(); ++row) {
        EXPECT_LE(MaxAbsDiff((*logits)[row], one.logits[row]), kMaxAbsDiff)
            << "position " << one.positions[row] << " of " << one.tokens.size()
            << " tokens, chunks of " << chunk;
      }
    }
    auto tokens = GreedyTokens(**driver, one.tokens, one.greedy.size());
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(*tokens, one.greedy) << "prompt of " << one.tokens.size() << " tokens";
  }
}

TEST_P(ArchGoldenTest, GreedyTokensWithF16Cache) {
  options_.kv_cache_type = "f16";
  options_.block_size = 8;
  options_.num_kv_blocks = 128;
  CheckGreedy();
}

std::vector<Parameters> AllParameters() {
  // Tensor-parallel sizes from 1 to 4 that divide the query heads.
  const std::vector<std::pair<std::string, std::vector<int>>> models = {
      {"llama", {1, 2, 4}},
      {"llama-rope-freqs", {1, 2, 4}},
      {"qwen2", {1, 2, 3}},
      {"qwen3", {1, 2, 4}}};
  std::vector<Parameters> all;
  for (const auto& [name, sizes] : models) {
    for (const char* kernels : {"reference", "avx2", "avx512"}) {
      for (int ranks : sizes) {
        for (const char* transport : {"shm", "grpc"}) {
          all.emplace_back(name, kernels, ranks, transport);
        }
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

}  // namespace
}  // namespace tandem::testing
