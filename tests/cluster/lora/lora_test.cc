// LoRA adapters through the engine and real worker processes: batches of several, and what they
// share.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/lora/random_adapter.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

constexpr char kModel[] = "arch/llama/model.gguf";
constexpr char kQuantised[] = "quant/models/Q4_K_M.gguf";

// Model, ranks.
using Parameters = std::tuple<const char*, int>;

class LoraTest : public ::testing::TestWithParam<Parameters> {
 protected:
  LoraTest() : options_(TestServerConfig(GoldenPath(std::get<0>(GetParam())))) {
    const std::string& model = options_.worker.model.path;
    options_.cluster.tensor_parallel_size = std::get<1>(GetParam());
    sampling_.temperature = 0;
    sampling_.max_tokens = 12;
    options_.worker.model.lora_modules = {
        {.name = "first", .path = WriteRandomAdapter(model, /*rank=*/5, /*seed=*/1)},
        {.name = "second", .path = WriteRandomAdapter(model, /*rank=*/3, /*seed=*/2)}};
  }

  // In one batch, a sequence each; 0: the model alone.
  std::vector<Output> Run(const std::vector<uint32_t>& adapters) {
    auto driver = EngineDriver::Start(options_);
    EXPECT_TRUE(driver.ok()) << driver.status();
    if (!driver.ok()) return std::vector<Output>(adapters.size());
    std::vector<Output*> outputs;
    for (const uint32_t adapter : adapters) {
      outputs.push_back(&(*driver)->Add(prompt_, sampling_, /*want_logits=*/true, adapter));
    }
    const absl::Status ran = (*driver)->RunAll();
    EXPECT_TRUE(ran.ok()) << ran;
    std::vector<Output> done;
    for (const Output* output : outputs) done.push_back(*output);
    return done;
  }

  config::ServerConfig options_;
  std::vector<TokenId> prompt_ = RandomPrompt(1, 40);
  coordinator::Sampling sampling_;
};

bool SameBits(const Output& a, const Output& b) {
  if (a.logits.size() != b.logits.size() || a.logits.empty()) return false;
  for (size_t row = 0; row < a.logits.size(); ++row) {
    if (a.logits[row].size() != b.logits[row].size() ||
        std::memcmp(a.logits[row].data(), b.logits[row].data(),
                    a.logits[row].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

TEST_P(LoraTest, ASequencesBitsAreThoseThatItHasAlone) {
  std::vector<Output> alone;
  for (const uint32_t adapter : {0u, 1u, 2u}) alone.push_back(Run({adapter})[0]);
  EXPECT_FALSE(SameBits(alone[0], alone[1]));
  EXPECT_FALSE(SameBits(alone[0], alone[2]));
  EXPECT_FALSE(SameBits(alone[1], alone[2]));
  const std::vector<uint32_t> batch = {1, 0, 2, 2, 1, 0};
  const std::vector<Output> together = Run(batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(together[i].tokens, alone[batch[i]].tokens) << i;
    EXPECT_TRUE(SameBits(together[i], alone[batch[i]])) << i;
  }
}

TEST_P(LoraTest, WithoutAdaptersInAStepTheModelIsAsWithoutAdapters) {
  const Output loaded = Run({0})[0];
  options_.worker.model.lora_modules.clear();
  EXPECT_TRUE(SameBits(loaded, Run({0})[0]));
}

TEST_P(LoraTest, GuessesChangeNoToken) {
  // Of few tokens, so that there is something to guess by, and guesses may be wrong.
  sampling_.logit_bias = {{5, 100.0f}, {9, 100.0f}, {40, 100.0f}};
  sampling_.max_tokens = 60;
  const Output one_by_one = Run({1})[0];
  options_.scheduling.speculation = config::Speculation::kNgram;
  const Output guessed = Run({1})[0];
  EXPECT_EQ(guessed.tokens, one_by_one.tokens);
  EXPECT_GT(guessed.usage.draft_tokens, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, LoraTest,
                         ::testing::Values(Parameters(kModel, 1), Parameters(kModel, 2),
                                           Parameters(kQuantised, 1), Parameters(kQuantised, 2)));

TEST(LoraCacheTest, PrefixesAreSharedWithinAnAdapter) {
  config::ServerConfig options = TestServerConfig(GoldenPath(kModel));
  options.worker.model.lora_modules = {
      {.name = "all", .path = GoldenPath("lora/llama/adapter.gguf")}};
  auto driver = EngineDriver::Start(options);
  ASSERT_TRUE(driver.ok()) << driver.status();
  coordinator::Sampling one_token;
  one_token.max_tokens = 1;
  const auto cached = [&](uint32_t adapter) {
    const Output& output = (*driver)->Add(RandomPrompt(1, 40), one_token, false, adapter);
    EXPECT_TRUE((*driver)->RunAll().ok());
    return output.usage.cached_tokens;
  };
  EXPECT_EQ(cached(0), 0u);
  EXPECT_EQ(cached(1), 0u);
  EXPECT_EQ(cached(1), 32u);
  EXPECT_EQ(cached(0), 32u);
}

}  // namespace
}  // namespace tandem::testing
