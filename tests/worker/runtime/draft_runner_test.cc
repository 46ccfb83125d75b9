// A runner with a draft model, which is the model itself: all of its guesses are what the model
// draws, in steps that mix sequences with more and fewer drafts, without any, and prompts; encoded,
// and beside decode graphs.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/run_ranks.h"
#include "tests/worker/comm/local_communicator.h"
#include "tests/worker/runtime/draft_rig.h"

namespace tandem::worker {
namespace {

constexpr char kQwen[] = "tests/golden/arch/qwen3/model.gguf";
constexpr char kGlm[] = "tests/golden/arch/glm4moe-mtp/model.gguf";

// What was drawn in the rows that want a guess.
Tokens SampledWithGuess(const step::StepDescriptor& step, const step::StepResult& result) {
  Tokens tokens;
  for (size_t r = 0; r < result.rows.size(); ++r) {
    if (step.rows[r].wants & step::kWantGuess) tokens.push_back(result.rows[r].tokens.at(0));
  }
  return tokens;
}

class DraftRunnerTest : public ::testing::TestWithParam<Place> {
 protected:
  void Start(bool with_draft) {
    RegisterPlace(GetParam(), notes_);
    config::WorkerConfig config = DraftConfig(GetParam(), kLlama);
    if (with_draft) config.model.draft_path = kLlama;
    started_ = {};
    auto started = StartRunner(config);
    ASSERT_TRUE(started.ok()) << started.status();
    started_ = *std::move(started);
    notes_->Clear();
  }

  step::StepResult Run(const step::StepDescriptor& step) {
    auto result = started_.runner->Run(step, Soon());
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : step::StepResult();
  }

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  StartedRunner started_;
};

INSTANTIATE_TEST_SUITE_P(Places, DraftRunnerTest,
                         ::testing::Values(Place::kHost, Place::kFakeDevice, Place::kFakeGraphs,
                                           Place::kEmulatedCuda),
                         &NameOf);

TEST_P(DraftRunnerTest, AModelGuessesWhatItDraws) {
  Start(/*with_draft=*/true);
  step::StepDescriptor prompts =
      MakeStep(1, {{0, 0, 0, {1, 2, 3, 4, 5}}, {1, 2, 0, {7, 8, 9}}, {2, 4, 0, {11, 12}}});
  WantGuesses(prompts);
  const step::StepResult first = Run(prompts);
  const Tokens drawn = Sampled(first);
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_EQ(first.guesses, drawn);

  // The sequence with fewer drafts comes first.
  step::StepDescriptor mixed = MakeStep(2, {{0, 0, 5, {drawn[0], 0}, 1},
                                            {1, 2, 3, {drawn[1], 0, 0, 0}, 1},
                                            {2, 4, 2, {drawn[2]}, 1},
                                            {3, 6, 0, {20, 21, 22}}});
  WantGuesses(mixed);
  MakeDrafts(0, mixed);
  MakeDrafts(1, mixed);
  const step::StepResult second = Run(mixed);
  const Tokens rows = Sampled(second);
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(second.guesses, (Tokens{rows[0], rows[2], rows[3], rows[4], rows[6], rows[7]}));

  // As one by one, without a draft model.
  Start(/*with_draft=*/false);
  EXPECT_EQ(Sampled(Run(MakeStep(1, {{1, 2, 0, {7, 8, 9}}}))), Tokens{drawn[1]});
  TokenId next = drawn[1];
  for (uint32_t i = 0; i < 4; ++i) {
    next = Sampled(Run(MakeStep(2 + i, {{1, 2, 3 + i, {next}, 1}}))).at(0);
    EXPECT_EQ(next, rows[2 + i]) << i;
  }
}

// The guesser's K and V of the token are then whatever the pages held, and the model draws the
// same.
TEST_P(DraftRunnerTest, AStepMaySkipTheGuesser) {
  std::vector<Tokens> drawn;
  std::vector<uint64_t> num_ops;  // of the second step
  for (const bool with_draft : {true, false}) {
    Start(with_draft);
    Tokens& tokens = drawn.emplace_back();
    for (uint32_t i = 0; i < 5; ++i) {
      step::StepDescriptor step = i == 0 ? MakeStep(1, {{0, 0, 0, {1, 2, 3}}})
                                         : MakeStep(1 + i, {{0, 0, 2 + i, {tokens.back()}, 1}});
      step.skips_guesser = with_draft && (i == 1 || i == 3);
      if (with_draft && !step.skips_guesser) WantGuesses(step);
      notes_->Clear();
      const step::StepResult result = Run(step);
      ASSERT_EQ(result.rows.size(), 1u);
      tokens.push_back(Sampled(result).at(0));
      EXPECT_EQ(result.guesses.size(), with_draft && !step.skips_guesser ? 1u : 0u) << i;
      if (i == 1) num_ops.push_back(notes_->ops);
    }
  }
  EXPECT_EQ(num_ops[0], num_ops[1]) << "of a fake device";
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST_P(DraftRunnerTest, OfManySequencesInStepsOfEveryKind) {
  Start(/*with_draft=*/true);
  const std::vector<RanStep> all = RunDraftSteps(*started_.runner);
  ASSERT_EQ(all.size(), 6u);
  for (const RanStep& one : all) {
    SCOPED_TRACE(step::DebugString(one.step));
    EXPECT_EQ(one.result.guesses.size(), one.step.step_id.value == 5 ? 14u : 9u);
    EXPECT_EQ(one.result.guesses, SampledWithGuess(one.step, one.result));
  }
  EXPECT_EQ(notes_->replays, GetParam() == Place::kFakeGraphs ? 4u : 0u);
}

// Only the first rank draws; the others compute what it has guessed.
class DraftRanksTest : public ::testing::TestWithParam<Place> {
 protected:
  void TwoDoWhatOneDoes(const config::WorkerConfig& config) {
    const std::vector<RanStep> one = RunOnRanks(config, 1), two = RunOnRanks(config, 2);
    ASSERT_EQ(one.size(), 6u);
    ASSERT_EQ(two.size(), 6u);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(Sampled(two[i].result), Sampled(one[i].result)) << i;
      EXPECT_EQ(two[i].result.guesses, one[i].result.guesses) << i;
      EXPECT_FALSE(one[i].result.guesses.empty());
    }
  }

 private:
  static std::vector<RanStep> RunOnRanks(const config::WorkerConfig& config, int size) {
    std::vector<std::unique_ptr<LoadedModel>> models;
    std::vector<kernels::HostStream*> streams;
    for (int rank = 0; rank < size; ++rank) {
      RegisterPlace(GetParam(), std::make_shared<FakeDeviceNotes>());
      auto model = LoadModel({.config = config, .assignment = {.rank = rank, .size = size}});
      EXPECT_TRUE(model.ok()) << model.status();
      if (!model.ok()) return {};
      models.push_back(*std::move(model));
      streams.push_back(models.back()->backend().host_stream());
    }
    auto comms = MakeLocalCommunicators(streams);
    std::vector<RanStep> first;
    RunRanks(size, [&](int rank) {
      const auto r = static_cast<size_t>(rank);
      ModelRunner runner(*models[r], RunnerOptions{.config = config});
      ASSERT_TRUE(runner.Prepare().ok());
      ASSERT_TRUE(runner.Start(Epoch{1}, {kDraftBlocks}, std::move(comms[r])).ok());
      std::vector<RanStep> all = RunDraftSteps(runner);
      if (rank == 0) first = std::move(all);
    });
    return first;
  }
};

INSTANTIATE_TEST_SUITE_P(Places, DraftRanksTest,
                         ::testing::Values(Place::kFakeDevice, Place::kFakeGraphs), &NameOf);

TEST_P(DraftRanksTest, OfADraftModel) {
  config::WorkerConfig config = DraftConfig(GetParam(), kLlama);
  config.model.draft_path = kLlama;
  TwoDoWhatOneDoes(config);
}

TEST_P(DraftRanksTest, OfADraftHead) {
  config::WorkerConfig config = DraftConfig(GetParam(), kGlm);
  config.model.spec.load_draft_head = true;
  TwoDoWhatOneDoes(config);
}

TEST_P(DraftRunnerTest, WithoutADraftModelThereAreNoGuesses) {
  Start(/*with_draft=*/false);
  step::StepDescriptor step = MakeStep(1, {{0, 0, 0, {1, 2}}});
  EXPECT_TRUE(Run(step).guesses.empty());
  WantGuesses(step);
  step.step_id = StepId{2};
  EXPECT_EQ(started_.runner->Run(step, Soon()).status().code(), absl::StatusCode::kInvalidArgument);
}

// Of `path` alone, with a draft model or with its draft head, on a device with graphs.
RunnerPlan PlanOf(const std::string& path, const std::string& draft_path = "",
                  bool draft_head = false) {
  RegisterPlace(Place::kFakeGraphs, std::make_shared<FakeDeviceNotes>());
  config::WorkerConfig config = DraftConfig(Place::kFakeGraphs, path);
  config.model.draft_path = draft_path;
  config.model.spec.load_draft_head = draft_head;
  const auto model = LoadModel({.config = config});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const auto plan = ModelRunner(**model, RunnerOptions{.config = config}).Prepare();
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(RunnerPlan());
}

// Its K and V are in the blocks, its weights are beside the model's, its activations are where the
// model's are later, and no graph has its ops. Here the draft model is the larger one.
TEST(DraftPlanTest, CountsBoth) {
  const RunnerPlan alone = PlanOf(kQwen), draft = PlanOf(kLlama), both = PlanOf(kQwen, kLlama);
  EXPECT_EQ(both.weights_bytes, alone.weights_bytes + draft.weights_bytes);
  EXPECT_EQ(both.kv_bytes(), alone.kv_bytes() + draft.kv_bytes());
  EXPECT_LT(alone.activation_bytes, draft.activation_bytes);
  EXPECT_GT(both.activation_bytes, alone.activation_bytes);
  EXPECT_LE(both.activation_bytes, draft.activation_bytes);
  EXPECT_GT(both.buffers_bytes, alone.buffers_bytes);
  EXPECT_GT(alone.graph_bytes, 0u);
  EXPECT_EQ(both.graph_bytes, alone.graph_bytes);
}

// Graphs write the states that the head reads, and have no op of the head.
TEST(DraftPlanTest, CountsTheDraftHead) {
  const RunnerPlan alone = PlanOf(kGlm), with = PlanOf(kGlm, "", /*draft_head=*/true);
  EXPECT_GT(with.weights_bytes, alone.weights_bytes);
  EXPECT_EQ(with.kv_bytes() * 2, alone.kv_bytes() * 3) << "two layers, and the head's";
  const uint64_t states = (16 * DraftStates::kKept + 1 + 64) * 32 * sizeof(float);
  EXPECT_GT(with.buffers_bytes, alone.buffers_bytes + states);
  EXPECT_GT(with.graph_bytes, alone.graph_bytes);
  EXPECT_LE(with.graph_bytes, alone.graph_bytes + 9 * 3 * kGraphNodeBytes) << "norm, copy";
}

}  // namespace
}  // namespace tandem::worker
