// A runner with a draft head: it guesses what the reference guesses, after prompts at once and in
// chunks, for sequences side by side, and after wrong guesses as if there had been none; encoded,
// and beside decode graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/golden_cases.h"
#include "tests/worker/runtime/draft_rig.h"

namespace tandem::worker {
namespace {

using testing::GoldenCase;

constexpr char kGlm[] = "glm4moe-mtp";
constexpr uint32_t kMostDrafts = step::kMaxDraftRows;

class DraftHeadRunnerTest : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    RegisterPlace(GetParam(), notes_);
    Load(kGlm);
  }

  static config::WorkerConfig ConfigOf(Place place, const std::string& name) {
    config::WorkerConfig config =
        DraftConfig(place, testing::GoldenPath("arch/" + name + "/model.gguf"));
    config.cache.kv_cache_type = tensor::Type::kF32;
    config.model.spec.load_draft_head = true;
    return config;
  }

  void Load(const std::string& name) {
    golden_ = testing::ReadArchGolden(name);
    const config::WorkerConfig config = ConfigOf(GetParam(), name);
    runner_.reset();
    auto model = LoadModel({.config = config});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    runner_ = std::make_unique<ModelRunner>(
        *model_, RunnerOptions{.config = config, .kv_cache_bytes = 0, .poison = true});
    ASSERT_TRUE(runner_->Prepare().ok());
    Restart();
  }

  void ExpectReferenceGuesses();

  void Restart() {
    ASSERT_TRUE(runner_->Start(Epoch{1}, {kDraftBlocks}, nullptr).ok());
    next_step_ = 1;
    blocks_sent_.clear();
  }

  // Tokens from position `begin` on, in blocks of the slot's own. The last of them wants a guess;
  // with drafts, all but the last and the first `num_again`. Or the step skips the head.
  step::StepResult Run(std::vector<Piece> pieces, bool drafts = false, uint32_t num_again = 0,
                       bool skips = false) {
    for (Piece& piece : pieces) {
      uint32_t& sent = blocks_sent_[piece.slot];
      piece.blocks_sent = piece.begin == 0 ? 0 : sent;
      sent = (piece.begin + static_cast<uint32_t>(piece.tokens.size()) + 7) / 8;
    }
    step::StepDescriptor step = MakeStep(next_step_++, pieces);
    step.skips_guesser = skips;
    if (!skips) WantGuesses(step);
    for (size_t s = 0; drafts && s < pieces.size(); ++s) MakeDrafts(s, step, num_again);
    auto result = runner_->Run(step, Soon());
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : step::StepResult();
  }

  static Piece PieceOf(Tokens tokens, uint32_t begin, uint32_t slot) {
    return {.slot = slot,
            .first_block = static_cast<int32_t>(8 * slot),
            .begin = begin,
            .tokens = std::move(tokens)};
  }
  static Piece Prompt(const GoldenCase& one, uint32_t slot) { return PieceOf(one.tokens, 0, slot); }
  static Piece Drafts(const GoldenCase& one, uint32_t slot, uint32_t count = 4) {
    Tokens tokens(1 + count, 0);
    tokens[0] = one.greedy.front();
    return PieceOf(std::move(tokens), static_cast<uint32_t>(one.tokens.size()), slot);
  }
  // Of the reference: of the token after the first that the model draws.
  static TokenId GuessAfterPrompt(const GoldenCase& one) {
    const std::vector<float>& logits = one.draft->logits.back();
    return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  }

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  testing::GoldenModel golden_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<ModelRunner> runner_;
  uint64_t next_step_ = 1;
  std::map<uint32_t, uint32_t> blocks_sent_;  // of each slot
};

INSTANTIATE_TEST_SUITE_P(Places, DraftHeadRunnerTest,
                         ::testing::Values(Place::kHost, Place::kFakeDevice, Place::kFakeGraphs,
                                           Place::kEmulatedCuda),
                         &NameOf);

TEST_P(DraftHeadRunnerTest, GuessesWhatTheReferenceGuesses) { ExpectReferenceGuesses(); }

TEST_P(DraftHeadRunnerTest, OfHybridsToo) {
  for (const char* name : {"qwen35-mtp", "qwen35moe-mtp"}) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(Load(name));
    ExpectReferenceGuesses();
  }
}

void DraftHeadRunnerTest::ExpectReferenceGuesses() {
  for (const uint32_t chunk : {64u, 5u}) {
    for (size_t c = 0; c < 3; ++c) {
      SCOPED_TRACE(::testing::Message() << "case " << c << " in chunks of " << chunk);
      Restart();
      const GoldenCase& one = golden_.cases[c];
      const auto total = static_cast<uint32_t>(one.tokens.size());
      step::StepResult result;
      for (uint32_t begin = 0; begin < total; begin += chunk) {
        const uint32_t end = std::min(begin + chunk, total);
        result = Run({PieceOf({one.tokens.begin() + begin, one.tokens.begin() + end}, begin, 0)});
      }
      EXPECT_EQ(Sampled(result), Tokens{one.greedy.front()});
      EXPECT_EQ(result.guesses, Tokens{GuessAfterPrompt(one)});
      EXPECT_EQ(Run({Drafts(one, 0)}, /*drafts=*/true).guesses, one.draft->guesses);
    }
  }
}

TEST_P(DraftHeadRunnerTest, OfSequencesSideBySide) {
  const GoldenCase &one = golden_.cases[1], &two = golden_.cases[2];
  EXPECT_EQ(Run({Prompt(one, 0), Prompt(two, 1)}).guesses,
            (Tokens{GuessAfterPrompt(one), GuessAfterPrompt(two)}));
  // The sequence with fewer drafts comes first.
  Tokens both(one.draft->guesses.begin(), one.draft->guesses.begin() + 2);
  both.insert(both.end(), two.draft->guesses.begin(), two.draft->guesses.end());
  EXPECT_EQ(Run({Drafts(one, 0, 2), Drafts(two, 1)}, /*drafts=*/true).guesses, both);
}

// The head's K and V of wrong drafts are written anew, and the state before the next token is that
// of the last right one.
TEST_P(DraftHeadRunnerTest, AfterWrongGuessesAsIfThereWereNone) {
  const GoldenCase& one = golden_.cases[1];
  const auto total = static_cast<uint32_t>(one.tokens.size());
  std::vector<Tokens> found;
  Run({Prompt(one, 0)});
  for (uint32_t i = 0; i < 6; ++i) {
    Tokens drafts(1 + kMostDrafts, 0);
    drafts[0] = one.greedy[i];
    const step::StepResult result =
        Run({PieceOf(std::move(drafts), total + i, 0)}, /*drafts=*/true);
    EXPECT_EQ(Sampled(result).front(), one.greedy[i + 1]);
    found.push_back(result.guesses);
  }
  std::vector<Tokens> expected;
  for (uint32_t i = 0; i < 6; ++i) {
    Restart();
    Tokens before = one.tokens;
    before.insert(before.end(), one.greedy.begin(), one.greedy.begin() + i);
    Run({PieceOf(before, 0, 0)});
    Tokens drafts(1 + kMostDrafts, 0);
    drafts[0] = one.greedy[i];
    expected.push_back(Run({PieceOf(std::move(drafts), total + i, 0)}, /*drafts=*/true).guesses);
  }
  EXPECT_EQ(found, expected);
}

// Tokens that were accepted are computed again, as those of a model with recurrent layers are.
TEST_P(DraftHeadRunnerTest, AfterTokensThatAreComputedAgain) {
  const GoldenCase& one = golden_.cases[1];
  const auto total = static_cast<uint32_t>(one.tokens.size());
  const auto drafts_after = [&](uint32_t known) {
    Tokens tokens(one.greedy.begin(), one.greedy.begin() + known);
    tokens.resize(known + 4, 0);
    return tokens;
  };
  for (const uint32_t num_again : {1u, 3u}) {
    SCOPED_TRACE(num_again);
    Restart();
    Run({Prompt(one, 0)});
    for (uint32_t i = 0; i <= num_again; ++i) Run({PieceOf({one.greedy[i]}, total + i, 0)});
    const Tokens expected =
        Run({PieceOf({one.greedy[num_again], 0, 0, 0, 0}, total + num_again, 0)}, true).guesses;
    const step::StepResult again =
        Run({PieceOf(drafts_after(num_again + 1), total, 0)}, true, num_again);
    EXPECT_EQ(again.guesses, expected);
    EXPECT_EQ(Sampled(again).front(), one.greedy[num_again + 1]);
  }
}

// A slot's next sequence does not see the states of the one before.
TEST_P(DraftHeadRunnerTest, OfANewSequenceInAnUsedSlot) {
  const GoldenCase &one = golden_.cases[1], &two = golden_.cases[2];
  Run({Prompt(one, 0)});
  Run({Drafts(one, 0)}, /*drafts=*/true);
  EXPECT_EQ(Run({Prompt(two, 0)}).guesses, Tokens{GuessAfterPrompt(two)});
  EXPECT_EQ(Run({Drafts(two, 0)}, /*drafts=*/true).guesses, two.draft->guesses);
}

// Nor does one that begins behind a cached prefix: its guesses are those in a slot never used.
TEST_P(DraftHeadRunnerTest, BehindAPrefixInAUsedSlot) {
  const GoldenCase &one = golden_.cases[1], &two = golden_.cases[2];
  std::vector<Tokens> found;
  for (const bool used : {false, true}) {
    Restart();
    Run({Prompt(two, 1)});
    if (used) Run({PieceOf(Tokens(8, one.tokens[1]), 0, 0)});
    // In the blocks of `two`, of which it has the first eight tokens in common.
    Piece behind = PieceOf({two.tokens.begin() + 8, two.tokens.begin() + 11}, 8, 0);
    behind.first_block = 8;
    blocks_sent_[0] = 0;
    Tokens guesses = Run({behind}).guesses;
    Piece drafts = PieceOf(Tokens(1 + kMostDrafts, 0), 11, 0);
    drafts.first_block = 8;
    drafts.tokens[0] = two.tokens[11];
    const Tokens more = Run({drafts}, /*drafts=*/true).guesses;
    guesses.insert(guesses.end(), more.begin(), more.end());
    found.push_back(guesses);
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST_P(DraftHeadRunnerTest, StepsOfEveryKindWithGraphsAndWithout) {
  const std::vector<RanStep> all = RunDraftSteps(*runner_);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(notes_->replays, GetParam() == Place::kFakeGraphs ? 4u : 0u);
  RegisterPlace(Place::kHost, notes_);
  const config::WorkerConfig config = ConfigOf(Place::kHost, kGlm);
  auto model = LoadModel({.config = config});
  ASSERT_TRUE(model.ok()) << model.status();
  ModelRunner on_host(**model, RunnerOptions{.config = config});
  ASSERT_TRUE(on_host.Prepare().ok());
  ASSERT_TRUE(on_host.Start(Epoch{1}, {kDraftBlocks}, nullptr).ok());
  const std::vector<RanStep> expected = RunDraftSteps(on_host);
  ASSERT_EQ(expected.size(), 6u);
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(step::DebugString(all[i].step));
    EXPECT_EQ(Sampled(all[i].result), Sampled(expected[i].result));
    EXPECT_EQ(all[i].result.guesses, expected[i].result.guesses);
  }
}

// Of one sequence nothing is guessed any more; the other's guesses are the reference's.
TEST_P(DraftHeadRunnerTest, BesideStepsThatSkipTheHead) {
  const GoldenCase &one = golden_.cases[1], &two = golden_.cases[2];
  TokenId next = Sampled(Run({Prompt(two, 1)})).at(0);
  auto position = static_cast<uint32_t>(two.tokens.size());
  const auto skip = [&] {
    next = Sampled(Run({PieceOf({next}, position++, 1)}, false, 0, /*skips=*/true)).at(0);
  };
  skip();
  EXPECT_EQ(Run({Prompt(one, 0)}).guesses, Tokens{GuessAfterPrompt(one)});
  skip();
  EXPECT_EQ(Run({Drafts(one, 0)}, /*drafts=*/true).guesses, one.draft->guesses);
}

}  // namespace
}  // namespace tandem::worker
