// Decode steps whose activations and scratch are NaN when they begin, on the CUDA backend under
// emulation: replayed from graphs or encoded, they give the tokens that steps without poison give.
// A step that read what an earlier one left there would not.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/factory.h"
#include "tests/worker/runtime/runner_rig.h"
#include "tools/cuda_emulation/emulated_backend.h"

namespace tandem::worker {
namespace {

constexpr uint32_t kSequences = 5;
constexpr uint32_t kBlock = 8;
constexpr int kSteps = 8;

RunnerOptions Options(bool eager, bool poison) {
  RunnerOptions options = {
      .config = {.model = {.spec = {.max_model_len = 32}},
                 .cache = {.block_size = kBlock, .num_kv_blocks = 4 * kSequences},
                 .limits = {.max_num_seqs = kSequences, .max_num_batched_tokens = 32},
                 .transport = {.max_result_bytes = {1 << 20}}}};
  options.config.cache.kv_cache_type = tensor::Type::kF16;
  options.config.device.enforce_eager = eager;
  options.poison = poison;
  return options;
}

// Prompts of all sequences, then decode steps of random ones of them. Every step's tokens, in
// order.
std::vector<TokenId> Decode(ModelRunner& runner) {
  std::vector<Piece> pieces;
  for (uint32_t s = 0; s < kSequences; ++s) {
    Piece piece{s, static_cast<int32_t>(4 * s), 0, {}};
    for (uint32_t t = 0; t < 2 + s; ++t) {
      piece.tokens.push_back(static_cast<TokenId>(40 * s + 7 * t));
    }
    pieces.push_back(piece);
  }
  std::vector<TokenId> all;
  std::mt19937 random(1);
  uint64_t id = 0;
  std::vector<uint32_t> chosen(kSequences);
  for (uint32_t s = 0; s < kSequences; ++s) chosen[s] = s;
  for (int step = 0; step <= kSteps; ++step) {
    std::vector<Piece> taken;
    for (const uint32_t s : chosen) taken.push_back(pieces[s]);
    const auto result = runner.Run(MakeStep(++id, taken), Soon());
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    for (size_t i = 0; i < chosen.size(); ++i) {
      Piece& piece = pieces[chosen[i]];
      piece.begin += static_cast<uint32_t>(piece.tokens.size());
      piece.blocks_sent = (piece.begin + kBlock - 1) / kBlock;
      piece.tokens = {result->rows[i].tokens.at(0)};
      all.push_back(piece.tokens[0]);
    }
    chosen.resize(kSequences);
    for (uint32_t s = 0; s < kSequences; ++s) chosen[s] = s;
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(1 + random() % kSequences);
  }
  return all;
}

class PoisonedReplayTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PoisonedReplayTest, GivesTheTokensOfStepsWithoutPoison) {
  kernels::RegisterCuda([](int) { return kernels::cuda::MakeEmulatedBackend(); });
  const auto tokens = [](bool eager, bool poison) {
    auto model =
        LoadLlama("cuda", 0, 1, std::string("tests/golden/arch/") + GetParam() + "/model.gguf");
    EXPECT_TRUE(model.ok()) << model.status();
    ModelRunner runner(**model, Options(eager, poison));
    EXPECT_TRUE(runner.Prepare().ok());
    const absl::Status started = runner.Start(Epoch{1}, {4 * kSequences}, nullptr);
    EXPECT_TRUE(started.ok()) << started;
    return Decode(runner);
  };
  const std::vector<TokenId> expected = tokens(/*eager=*/true, /*poison=*/false);
  EXPECT_GT(expected.size(), kSequences + kSteps);
  EXPECT_EQ(tokens(/*eager=*/true, /*poison=*/true), expected);
  EXPECT_EQ(tokens(/*eager=*/false, /*poison=*/true), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, PoisonedReplayTest,
                         ::testing::Values("llama", "llama-moe", "deepseek2-lite"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace tandem::worker
