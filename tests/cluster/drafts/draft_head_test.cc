// A model's own draft head on real workers: answers are those without it, to the token.
#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/cluster/drafts/answers.h"
#include "tests/cluster/drafts/guessable_model.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {
namespace {

constexpr char kModel[] = "arch/glm4moe-mtp/model.gguf";

// With 0 of the state, the head guesses what the model draws at temperature 0.
std::string WriteModel(float of_state) {
  return WriteGuessable(kModel, {.of_layers = 0, .of_state = of_state});
}

config::ServerConfig With(config::ServerConfig config) {
  config.scheduling.speculation = config::Speculation::kMtp;
  config::Complete(config);
  return config;
}

config::ServerConfig Tiny(config::ServerConfig config) {
  config.worker.cache.block_size = 8;
  config.worker.cache.num_kv_blocks = 24;
  config.scheduling.chunked_prefill_size = 7;
  return config;
}

class RightHeadTest : public ::testing::TestWithParam<int> {};

TEST_P(RightHeadTest, IsNeverWrong) {
  const config::ServerConfig config = DraftTestConfig(WriteModel(0), GetParam());
  for (const bool at_once : {false, true}) {
    const Answers plain = AskAll(config, 0, 3, at_once);
    const Answers run = AskAll(With(config), 0, 3, at_once);
    EXPECT_EQ(run.tokens, plain.tokens);
    EXPECT_GT(run.stats.drafts, 20);
    EXPECT_EQ(run.stats.accepted_drafts, run.stats.drafts);
    EXPECT_LT(run.stats.steps, plain.stats.steps);
    EXPECT_EQ(AskAll(Tiny(With(config)), 0, 3, at_once).tokens, plain.tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RightHeadTest, ::testing::Values(1, 2),
                         [](const auto& param) { return "tp" + std::to_string(param.param); });

// How much of the state the edited head sees, or the file as it is; temperature.
struct Guesses {
  const char* name;
  std::optional<float> of_state;
  float temperature;
};

void PrintTo(const Guesses& guesses, std::ostream* out) { *out << guesses.name; }

class HeadTest : public ::testing::TestWithParam<Guesses> {};

TEST_P(HeadTest, ChangesNoAnswer) {
  const auto& [name, of_state, temperature] = GetParam();
  const std::string path = of_state.has_value() ? WriteModel(*of_state) : GoldenPath(kModel);
  for (const int ranks : {1, 2}) {
    const config::ServerConfig config = DraftTestConfig(path, ranks);
    const Answers plain = AskAll(config, temperature, 4, /*at_once=*/true);
    const Answers run = AskAll(With(config), temperature, 4, /*at_once=*/true);
    EXPECT_EQ(run.tokens, plain.tokens);
    if (of_state.has_value()) {
      EXPECT_GT(run.stats.accepted_drafts, 0);
      EXPECT_LT(run.stats.accepted_drafts, run.stats.drafts);
    }
    EXPECT_EQ(AskAll(Tiny(With(config)), temperature, 4, /*at_once=*/true).tokens, plain.tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Guesses, HeadTest,
                         ::testing::Values(Guesses{"OfTheFile", std::nullopt, 0.0f},
                                           Guesses{"OfTheFileAtRandom", std::nullopt, 0.9f},
                                           Guesses{"OfTokensAndStates", 0.5f, 0.0f},
                                           Guesses{"OfTokensAtRandom", 0.0f, 0.2f}),
                         [](const auto& param) { return param.param.name; });

TEST(DraftHeadTest, AFileWithoutOneIsRefused) {
  const auto driver =
      EngineDriver::Start(With(DraftTestConfig(GoldenPath("arch/llama/model.gguf"))));
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("the file has no draft head"), std::string::npos)
      << driver.status();
}

}  // namespace
}  // namespace tandem::testing
