// Guesses for models with recurrent layers, on real workers: their states go back to before a wrong
// one, and answers are those without guesses, to the token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/cluster/drafts/answers.h"
#include "tests/cluster/drafts/guessable_model.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {
namespace {

using config::Speculation;

struct Case {
  const char* model;
  float of_layers;
  Speculation speculation;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.model; }

config::ServerConfig With(config::ServerConfig config, Speculation speculation) {
  config.scheduling.speculation = speculation;
  config::Complete(config);
  return config;
}

// A few blocks and snapshots, and chunks shorter than what is computed again.
config::ServerConfig Tiny(config::ServerConfig config) {
  config.worker.cache.block_size = 8;
  config.worker.cache.num_kv_blocks = 40;
  config.worker.cache.state_snapshot_interval = 16;
  config.scheduling.chunked_prefill_size = 3;
  return config;
}

class HybridTest : public ::testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(HybridTest, GuessesChangeNoAnswer) {
  const auto& [one, ranks] = GetParam();
  const config::ServerConfig config = DraftTestConfig(
      WriteGuessable(absl::StrCat("arch/", one.model, "/model.gguf"), {.of_layers = one.of_layers}),
      ranks);
  int64_t num_accepted = 0, num_rejected = 0;
  for (const float temperature : {0.0f, 0.2f}) {
    for (const bool at_once : {false, true}) {
      const Answers plain = AskAll(config, temperature, 4, at_once);
      const config::ServerConfig guessing = With(config, one.speculation);
      for (const config::ServerConfig& other : {guessing, Tiny(guessing)}) {
        const Answers run = AskAll(other, temperature, 4, at_once);
        EXPECT_EQ(run.tokens, plain.tokens);
        num_accepted += run.stats.accepted_drafts;
        num_rejected += run.stats.drafts - run.stats.accepted_drafts;
      }
    }
  }
  EXPECT_GT(num_accepted, 20);
  EXPECT_GT(num_rejected, 20);
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Case, int>>& param) {
  const auto& [one, ranks] = param.param;
  const bool by_head = one.speculation == Speculation::kMtp;
  std::string name = absl::StrCat(one.model, by_head ? "_mtp" : "_ngram", "_tp", ranks);
  std::ranges::replace(name, '-', '_');
  return name;
}

constexpr Case kCases[] = {{"qwen35", 0.05f, Speculation::kNgram},
                           {"qwen3next", 0.2f, Speculation::kNgram},
                           {"qwen35-mtp", 0.1f, Speculation::kMtp},
                           {"qwen35moe-mtp", 0.2f, Speculation::kMtp}};

INSTANTIATE_TEST_SUITE_P(Models, HybridTest,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values(1, 2)),
                         &NameOf);

TEST(HybridStartTest, NothingIsGuessedWithoutSnapshots) {
  config::ServerConfig config = DraftTestConfig(GoldenPath("arch/qwen35-mtp/model.gguf"));
  config.scheduling.enable_prefix_caching = false;
  const auto driver = EngineDriver::Start(With(config, Speculation::kMtp));
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("--no-enable-prefix-caching"), std::string::npos)
      << driver.status();
  EXPECT_TRUE(EngineDriver::Start(With(config, Speculation::kNgram)).ok());
}

}  // namespace
}  // namespace tandem::testing
