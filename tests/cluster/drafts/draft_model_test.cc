// A draft model on real workers: answers are those without one, to the token, and a model that is
// its own draft model is never wrong, which it would be if its K and V were missing or stale.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/cluster/drafts/answers.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {
namespace {

constexpr char kModel[] = "quant/models/Q4_K_M.gguf";

config::ServerConfig Config(const std::string& model, int ranks = 1) {
  return DraftTestConfig(GoldenPath(model), ranks);
}

config::ServerConfig With(config::ServerConfig options, const std::string& draft) {
  options.scheduling.speculation = config::Speculation::kDraft;
  options.worker.model.draft_path = GoldenPath(draft);
  return options;
}

class OwnDraftTest : public ::testing::TestWithParam<int> {
 protected:
  // Greedy requests, with the model as its own draft model.
  Answers Expect(const config::ServerConfig& options, uint32_t count, bool at_once) {
    const Answers plain = AskAll(Config(kModel, GetParam()), 0, count, at_once);
    Answers run = AskAll(With(options, kModel), 0, count, at_once);
    EXPECT_EQ(run.tokens, plain.tokens);
    EXPECT_GT(run.stats.drafts, 20);
    EXPECT_EQ(run.stats.accepted_drafts, run.stats.drafts);
    return run;
  }
  config::ServerConfig options_ = Config(kModel, GetParam());
};

TEST_P(OwnDraftTest, IsNeverWrong) {
  const Answers run = Expect(options_, 4, /*at_once=*/false);
  EXPECT_LT(run.stats.steps, AskAll(options_, 0, 4, /*at_once=*/false).stats.steps / 2);
}

TEST_P(OwnDraftTest, OfSeveralAtOnce) { Expect(options_, 3, /*at_once=*/true); }

TEST_P(OwnDraftTest, WithoutOverlap) {
  options_.scheduling.overlap = false;
  Expect(options_, 2, /*at_once=*/true);
}

TEST_P(OwnDraftTest, AfterChunks) {
  options_.scheduling.chunked_prefill_size = 7;
  Expect(options_, 3, /*at_once=*/true);
}

TEST_P(OwnDraftTest, AfterACachedPrefix) {
  options_.worker.cache.block_size = 8;
  options_.worker.cache.num_kv_blocks = 128;
  EXPECT_GT(Expect(options_, 4, /*at_once=*/false).stats.cached_tokens, 0);
}

TEST_P(OwnDraftTest, AfterAPreemption) {
  options_.worker.cache.block_size = 8;
  options_.worker.cache.num_kv_blocks = 24;
  EXPECT_GT(Expect(options_, 5, /*at_once=*/true).stats.preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, OwnDraftTest, ::testing::Values(1, 2),
                         [](const auto& param) { return "tp" + std::to_string(param.param); });

// The model, its draft model, temperature. The first model has windows in one of two KV groups.
using Pair = std::tuple<const char*, const char*, float>;

class OtherDraftTest : public ::testing::TestWithParam<Pair> {};

TEST_P(OtherDraftTest, ChangesNoAnswer) {
  const auto& [model, draft, temperature] = GetParam();
  for (const int ranks : {1, 2}) {
    const config::ServerConfig options = Config(model, ranks);
    const Answers plain = AskAll(options, temperature, 4, /*at_once=*/true);
    const Answers run = AskAll(With(options, draft), temperature, 4, /*at_once=*/true);
    EXPECT_EQ(run.tokens, plain.tokens);
    config::ServerConfig tiny = With(options, draft);
    tiny.worker.cache.block_size = 8;
    tiny.worker.cache.num_kv_blocks = 24;
    tiny.scheduling.chunked_prefill_size = 7;
    EXPECT_EQ(AskAll(tiny, temperature, 4, /*at_once=*/true).tokens, plain.tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, OtherDraftTest,
    ::testing::Values(Pair("arch/gemma3/model.gguf", "arch/llama/model.gguf", 0.9f),
                      Pair("arch/qwen35/model.gguf", "arch/llama/model.gguf", 0.9f),
                      Pair(kModel, "arch/gpt2/model.gguf", 0.0f),
                      Pair(kModel, "quant/models/Q8_0.gguf", 0.0f),
                      Pair(kModel, "quant/models/Q8_0.gguf", 0.9f)));

// With a draft model that is often right.
TEST(DraftModelTest, ALikeDraftIsSometimesWrong) {
  const Answers run = AskAll(With(Config(kModel), "quant/models/Q8_0.gguf"), 0, 4, false);
  EXPECT_GT(run.stats.accepted_drafts, 0);
  EXPECT_LT(run.stats.accepted_drafts, run.stats.drafts);
}

struct Refusal {
  const char* name;
  const char* model;
  const char* draft;
  const char* message;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class RefusedDraftTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedDraftTest, SaysWhy) {
  const config::ServerConfig options = With(Config(GetParam().model), GetParam().draft);
  const auto driver = EngineDriver::Start(options);
  ASSERT_FALSE(driver.ok());
  const std::string message(driver.status().message());
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().draft), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Drafts, RefusedDraftTest,
                         ::testing::Values(Refusal{"Vocabulary", kModel, "../../models/demo.gguf",
                                                   "its vocabulary has 1718 rows, the model's 323"},
                                           Refusal{"Recurrent", kModel, "arch/qwen3next/model.gguf",
                                                   "it has recurrent layers"},
                                           Refusal{"Windows", kModel, "arch/gemma3/model.gguf",
                                                   "it has layers with sliding windows"}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace tandem::testing
