// Steps in flight on the CUDA backend, emulated: the same tokens as a step at a time. The batches
// of a run are the same with and without overlap, as all requests begin together and their ends can
// be foreseen.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/cluster/cuda_worker.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

// Ranks, whether steps are encoded instead of replayed.
using Parameters = std::tuple<int, bool>;

class CudaOverlapTest : public ::testing::TestWithParam<Parameters> {
 protected:
  // The tokens of three requests, two of them sampled, of different lengths.
  std::vector<std::vector<TokenId>> Tokens(const CudaWorker& worker, bool overlap) {
    config::ServerConfig options = TestServerConfig(GoldenPath("arch/llama/model.gguf"));
    options.worker.device.device = config::Device::kCuda;
    options.worker.device.enforce_eager = std::get<1>(GetParam());
    options.worker.limits.max_num_seqs = 4;
    options.cluster.worker_binary = worker.binary;
    options.cluster.tensor_parallel_size = std::get<0>(GetParam());
    options.scheduling.chunked_prefill_size = 4;
    options.scheduling.overlap = overlap;
    auto driver = EngineDriver::Start(options);
    EXPECT_TRUE(driver.ok()) << driver.status();
    if (!driver.ok()) return {};
    std::vector<Output*> outputs;
    for (int i = 0; i < 3; ++i) {
      coordinator::Sampling sampling;
      sampling.temperature = i == 0 ? 0.0f : 0.9f;
      sampling.seed = static_cast<uint64_t>(i);
      sampling.max_tokens = 6 + 2 * static_cast<uint32_t>(i);
      std::vector<TokenId> prompt = {1, 2, 3, 4, 5 + i, 6};
      outputs.push_back(&(*driver)->Add(std::move(prompt), sampling));
    }
    const absl::Status ran = (*driver)->RunAll();
    EXPECT_TRUE(ran.ok()) << ran;
    EXPECT_EQ((*driver)->Stats().surplus_tokens, 0);
    std::vector<std::vector<TokenId>> tokens;
    for (const Output* output : outputs) tokens.push_back(output->tokens);
    return tokens;
  }
};

TEST_P(CudaOverlapTest, TheSameTokensAsAStepAtATime) {
  const CudaWorker worker = FindCudaWorker(std::get<0>(GetParam()));
  if (!worker.missing.empty()) GTEST_SKIP() << worker.missing;
  const auto expected = Tokens(worker, /*overlap=*/false);
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_EQ(expected[2].size(), 10u);
  EXPECT_EQ(Tokens(worker, /*overlap=*/true), expected);
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaOverlapTest,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()),
                         [](const auto& test) {
                           return "Ranks" + std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "Eager" : "Graphs");
                         });

}  // namespace
}  // namespace tandem::testing
