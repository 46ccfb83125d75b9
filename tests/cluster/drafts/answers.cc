#include "tests/cluster/drafts/answers.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/cluster/engine_driver.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {

config::ServerConfig DraftTestConfig(const std::string& path, int ranks) {
  config::ServerConfig options = TestServerConfig(path);
  options.cluster.tensor_parallel_size = ranks;
  options.worker.cache.kv_cache_type = tensor::Type::kF16;
  options.worker.limits.max_num_batched_tokens = 512;
  return options;
}

Answers AskAll(const config::ServerConfig& config, float temperature, uint32_t count,
               bool at_once) {
  Answers run;
  auto driver = EngineDriver::Start(config);
  EXPECT_TRUE(driver.ok()) << driver.status();
  if (!driver.ok()) return run;
  std::vector<const Output*> outputs;
  for (uint32_t i = 0; i < count; ++i) {
    coordinator::Sampling sampling;
    sampling.temperature = temperature;
    sampling.max_tokens = 40 + 9 * i;
    sampling.seed = i;
    std::vector<TokenId> prompt = RandomPrompt(i % 2, 37);
    const std::vector<TokenId> own = RandomPrompt(100 + i, 3 + 5 * i);
    prompt.insert(prompt.end(), own.begin(), own.end());
    outputs.push_back(&(*driver)->Add(std::move(prompt), sampling));
    if (at_once) continue;
    const absl::Status ran = (*driver)->RunAll();
    EXPECT_TRUE(ran.ok()) << ran;
  }
  const absl::Status ran = (*driver)->RunAll();
  EXPECT_TRUE(ran.ok()) << ran;
  for (const Output* output : outputs) {
    EXPECT_TRUE(output->status.ok()) << output->status;
    run.tokens.push_back(output->tokens);
  }
  run.stats = (*driver)->Stats();
  EXPECT_EQ(run.stats.free_blocks, run.stats.total_blocks);
  return run;
}

}  // namespace tandem::testing
