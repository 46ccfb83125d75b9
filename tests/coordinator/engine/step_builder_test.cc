#include "coordinator/engine/step_builder.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/step/block_tables.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/speculation/drafter.h"

namespace tandem::coordinator {
namespace {

using Ids = std::vector<BlockId>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class StepBuilderTest : public testing::Test {
 protected:
  StepBuilderTest() {
    config_ = {
        .block_size = 4,
        .enable_prefix_cache = true,
        .groups = {{.num_blocks = 16, .window_tokens = 0}, {.num_blocks = 16, .window_tokens = 4}}};
    kv_ = std::make_unique<BlockManager>(config_);
  }
  ~StepBuilderTest() override {
    for (auto& generation : generations_) kv_->Release(generation->blocks);
  }

  // A generation whose first `computed` tokens are computed, by steps that have sent their blocks,
  // and which has room for all.
  Generation& Make(std::vector<TokenId> prompt, uint32_t computed, uint32_t slot,
                   Sampling sampling = {}) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling = std::move(sampling);
    generations_.push_back(
        std::make_unique<Generation>(generations_.size() + 1, std::move(request)));
    Generation& generation = *generations_.back();
    generation.slot = slot;
    EXPECT_TRUE(kv_->Start(generation.blocks, {}, generation.num_tokens(), 1));
    kv_->Commit(generation.blocks, generation.tokens, computed);
    generation.num_computed = generation.num_scheduled = computed;
    generation.num_blocks_sent = (computed + 3) / 4;
    return generation;
  }

  static PlanEntry Entry(Generation& generation, uint32_t num_tokens) {
    return {.sequence = &generation,
            .begin = generation.num_scheduled,
            .num_tokens = num_tokens,
            .phase = generation.phase(),
            .samples = num_tokens == generation.num_missing()};
  }

  step::StepDescriptor Build(const Plan& plan, uint64_t step_id = 1) const {
    step::StepDescriptor step;
    step.step_id = StepId{step_id};
    builder_.Build(plan, step);
    return step;
  }

  static step::StepLimits Limits() {
    return {.max_tokens = 64,
            .max_seqs = 8,
            .max_model_len = 64,
            .vocab_size = 100,
            .block_size = 4,
            .num_blocks = {16, 16},
            .windows = {0, 4},
            .max_result_bytes = 1 << 20};
  }
  // The validation of a worker whose tables are empty.
  static absl::Status Validate(const step::StepDescriptor& step) {
    return step::Validate(step, Limits(), step::BlockTables(Limits()));
  }

  KvCacheConfig config_;
  std::unique_ptr<BlockManager> kv_;
  std::vector<std::unique_ptr<Generation>> generations_;
  const StepBuilder builder_{4, 2, /*guesses=*/false};
};

TEST_F(StepBuilderTest, WritesADecodeAndAPrefill) {
  Generation& a = Make({10, 11, 12, 13, 14, 15, 16, 17, 18}, 8, 3);
  Generation& b = Make({20, 21, 22, 23, 24}, 0, 1);
  Plan plan;
  plan.entries = {Entry(a, 1), Entry(b, 3)};
  const step::StepDescriptor step = Build(plan);
  EXPECT_EQ(step.kind, step::StepKind::kMixed);
  EXPECT_EQ(step.num_scheduled_tokens, 4u);
  EXPECT_EQ(step.num_seqs_active, 2u);
  EXPECT_EQ(step.tokens, (std::vector<TokenId>{18, 20, 21, 22}));
  EXPECT_EQ(step.positions, (std::vector<int32_t>{8, 0, 1, 2}));
  EXPECT_EQ(step.query_offsets, (std::vector<uint32_t>{0, 1, 4}));
  EXPECT_EQ(step.sequences[0], (step::SequenceEntry{.slot = 3, .query_len = 1, .context_len = 9}));
  EXPECT_EQ(step.sequences[1], (step::SequenceEntry{.slot = 1, .query_len = 3, .context_len = 3}));
  // Blocks are given in order: a has 0 1 2, of which workers know the first two, b has 3 4;
  // position 8 sees 5..8 in group 1.
  using Deltas = std::vector<step::TableDelta>;
  EXPECT_EQ(step.groups[0].tables, (Deltas{{2, 3, 0}, {0, 2, 0}}));
  EXPECT_EQ(step.groups[0].blocks, (Ids{2, 3, 4}));
  EXPECT_EQ(step.groups[0].slot_mapping, (std::vector<int32_t>{8, 12, 13, 14}));
  EXPECT_EQ(step.groups[1].tables, (Deltas{{2, 3, 1}, {0, 2, 0}}));
  ASSERT_EQ(step.rows.size(), 1u);
  EXPECT_EQ(step.rows[0], (step::RowRequest{.token = 0, .wants = step::kWantSample}));
  EXPECT_EQ(step.sampling.size(), 1u);
}

TEST_F(StepBuilderTest, ASequenceThatIsNewOnWorkersBringsItsTable) {
  Generation& a = Make({10, 11, 12, 13, 14, 15, 16, 17, 18}, 8, 3);
  a.num_blocks_sent = 0;
  Plan plan;
  plan.entries = {Entry(a, 1)};
  const step::StepDescriptor step = Build(plan);
  EXPECT_EQ(step.groups[0].blocks, (Ids{0, 1, 2}));
  EXPECT_EQ(step.groups[1].tables[0], (step::TableDelta{0, 3, 1}));
  EXPECT_EQ(step.groups[1].blocks, (Ids{1, 2}));  // the first is behind the window
  EXPECT_TRUE(Validate(step).ok()) << Validate(step) << step::DebugString(step);
}

// The step before draws for a in its second sample; a's next token is that one.
TEST_F(StepBuilderTest, APendingTokenIsAReference) {
  Sampling sampling;
  sampling.max_tokens = 10;
  sampling.min_tokens = 2;
  sampling.end_ids = {1};
  Generation& b = Make({20, 21, 22, 23, 24}, 0, 1);
  Generation& a = Make({10, 11, 12}, 0, 3, sampling);
  Plan plan;
  plan.entries = {Entry(b, 5), Entry(a, 3)};
  const step::StepDescriptor first = Build(plan, 1);
  EXPECT_TRUE(first.references.empty());
  step::BlockTables tables(Limits());
  ASSERT_TRUE(step::Validate(first, Limits(), tables).ok());
  tables.Apply(first);

  a.num_scheduled = 3;
  a.num_pending = 1;
  a.num_blocks_sent = 1;
  ASSERT_TRUE(kv_->Grow(a.blocks, 4));
  plan.entries = {Entry(a, 1)};
  plan.entries[0].refers = true;
  const step::StepDescriptor second = Build(plan, 2);
  EXPECT_EQ(second.tokens, (std::vector<TokenId>{0}));
  EXPECT_EQ(second.positions, (std::vector<int32_t>{3}));
  EXPECT_EQ(second.references, (std::vector<step::TokenReference>{{.token = 0, .sample = 1}}));
  // The second token of at least two: an end id is banned as if the first were known.
  EXPECT_EQ(second.sampling[0].position, 4u);
  EXPECT_EQ(second.sampling[0].adjustments.size(), 1u);
  EXPECT_EQ(step::Validate(second, Limits(), tables), absl::OkStatus());
  // And the third, which refers to that one, is free to end.
  a.num_scheduled = 4;
  a.tokens.push_back(50);
  plan.entries[0] = Entry(a, 1);
  plan.entries[0].refers = true;
  ASSERT_TRUE(kv_->Grow(a.blocks, 5));
  const step::StepDescriptor third = Build(plan, 3);
  EXPECT_EQ(third.references, (std::vector<step::TokenReference>{{.token = 0, .sample = 0}}));
  EXPECT_TRUE(third.sampling[0].adjustments.empty());
}

TEST_F(StepBuilderTest, SaysTheKind) {
  Generation& decode = Make({1, 2, 3}, 2, 0);
  Generation& prefill = Make({4, 5, 6}, 0, 1);
  Plan plan;
  plan.entries = {Entry(decode, 1)};
  step::StepDescriptor step = Build(plan, 2);
  EXPECT_EQ(step.kind, step::StepKind::kDecode);
  plan.entries = {Entry(prefill, 3)};
  // Memory is used again, but nothing of the step before stays.
  builder_.Build(plan, step);
  EXPECT_EQ(step.kind, step::StepKind::kPrefill);
  EXPECT_EQ(step, Build(plan, 2));
}

TEST_F(StepBuilderTest, SamplingIsKeyedByThePositionOfTheDrawnToken) {
  Sampling sampling;
  sampling.temperature = 0.7f;
  sampling.top_p = 0.9f;
  sampling.min_p = 0.1f;
  sampling.top_k = 5;
  sampling.seed = 99;
  sampling.min_tokens = 2;
  sampling.max_tokens = 10;
  sampling.end_ids = {1, 2};
  Generation& a = Make({10, 11, 12}, 0, 0, sampling);
  Plan plan;
  plan.entries = {Entry(a, 3)};
  const step::RowSampling expected{
      .temperature = 0.7f,
      .top_p = 0.9f,
      .min_p = 0.1f,
      .top_k = 5,
      .seed = 99,
      .position = 3,
      .adjustments = {{.id = 1, .bias = -kInfinity}, {.id = 2, .bias = -kInfinity}}};
  EXPECT_EQ(Build(plan, 1).sampling[0], expected);
  // The same after a preemption: two tokens drawn, all computed anew.
  a.tokens.push_back(50);
  plan.entries = {Entry(a, 4)};
  EXPECT_EQ(Build(plan, 2).sampling[0].position, 4u);
  EXPECT_EQ(Build(plan, 2).sampling[0].adjustments.size(), 2u);
  a.tokens.push_back(51);
  ASSERT_TRUE(kv_->Grow(a.blocks, 5));
  plan.entries = {Entry(a, 5)};
  const step::StepDescriptor step = Build(plan, 3);
  EXPECT_EQ(step.sampling[0].position, 5u);
  EXPECT_TRUE(step.sampling[0].adjustments.empty());
}

TEST_F(StepBuilderTest, SamplersAndPenaltiesGoWithTheRow) {
  Sampling sampling;
  sampling.max_tokens = 10;
  sampling.typical_p = 0.5f;
  sampling.xtc_probability = 0.25f;
  sampling.xtc_threshold = 0.125f;
  sampling.penalties.frequency = 0.5f;
  sampling.penalties.repetition = 2;
  sampling.logit_bias = {{12, 3.0f}};
  Generation& a = Make({10, 11, 11}, 0, 0, sampling);
  a.tokens.push_back(12);
  Plan plan;
  plan.entries = {Entry(a, 4)};
  const step::RowSampling row = Build(plan).sampling[0];
  EXPECT_EQ(row.typical_p, 0.5f);
  EXPECT_EQ(row.xtc_probability, 0.25f);
  EXPECT_EQ(row.xtc_threshold, 0.125f);
  EXPECT_EQ(row.adjustments, (std::vector<step::LogitAdjustment>{
                                 {.id = 10, .repetition = 2},
                                 {.id = 11, .repetition = 2},
                                 {.id = 12, .bias = 3, .repetition = 2, .penalty = 0.5f}}));
  EXPECT_TRUE(Validate(Build(plan)).ok()) << Validate(Build(plan));
}

TEST_F(StepBuilderTest, ScoresPromptTokensThatAreNotKnownYet) {
  Sampling sampling;
  sampling.max_tokens = 9;
  sampling.logprobs = 0;
  sampling.prompt_logprobs = 2;
  Generation& a = Make({10, 11, 12, 13, 14, 15, 16}, 0, 0, sampling);
  Generation& b = Make({20, 21, 22, 23}, 0, 1);
  const auto row = [](uint32_t token, TokenId about) {
    return step::RowRequest{.token = token,
                            .wants = step::kWantLogprobsOf | step::kWantTopLogprobs,
                            .top_n = 2,
                            .logprobs_of = {about}};
  };
  const step::RowRequest plain{.token = 3, .wants = step::kWantSample};
  using Rows = std::vector<step::RowRequest>;
  Plan plan;
  plan.entries = {Entry(b, 4), Entry(a, 5)};
  const step::StepDescriptor first = Build(plan, 1);
  // Of a's tokens 4..8; the last one is about the first token of the next chunk.
  EXPECT_EQ(first.rows, (Rows{plain, row(4, 11), row(5, 12), row(6, 13), row(7, 14), row(8, 15)}));
  EXPECT_TRUE(Validate(first).ok()) << Validate(first);

  a.num_scheduled = 5;
  a.next_scored = 5;
  plan.entries = {Entry(a, 2)};
  const step::RowRequest sample{.token = 1, .wants = step::kWantSample | step::kWantSampleLogprob};
  EXPECT_EQ(Build(plan, 2).rows, (Rows{row(0, 16), sample}));

  // Preempted after the first chunk: all tokens are computed again, but only missing entries are
  // requested.
  a.num_scheduled = 0;
  plan.entries = {Entry(a, 6)};
  EXPECT_EQ(Build(plan, 3).rows, (Rows{row(5, 16)}));
  // Preempted while it generated: nothing is missing.
  a.next_scored = 6;
  a.tokens.push_back(50);
  plan.entries = {Entry(a, 8)};
  EXPECT_EQ(Build(plan, 4).rows,
            (Rows{{.token = 7, .wants = step::kWantSample | step::kWantSampleLogprob}}));
}

TEST_F(StepBuilderTest, AsksForLogitsWhereTheyAreWanted) {
  Request request;
  request.prompt = {1, 2};
  request.want_logits = true;
  generations_.push_back(std::make_unique<Generation>(1, std::move(request)));
  Generation& generation = *generations_.back();
  ASSERT_TRUE(kv_->Start(generation.blocks, {}, 2, 2));
  Plan plan;
  plan.entries = {Entry(generation, 2)};
  EXPECT_EQ(Build(plan, 1).rows[0].wants, step::kWantSample | step::kWantLogits);
}

// Where the workers guess: before each draft, and where drafts may follow soon.
TEST_F(StepBuilderTest, AsksForGuessesThatAreOfUse) {
  Generation& a = Make({10, 11, 12}, 2, 0);
  Generation& b = Make({20, 21, 22}, 2, 1);
  a.speculator.emplace(std::make_unique<ModelDrafter>(), 2);
  const auto wants = [&](const Plan& plan) {
    const step::StepDescriptor step = Build(plan);
    std::vector<bool> guesses;
    for (const step::RowRequest& row : step.rows) {
      guesses.push_back((row.wants & step::kWantGuess) != 0);
    }
    return guesses;
  };
  Plan plan;
  plan.entries = {Entry(a, 1), Entry(b, 1)};
  EXPECT_EQ(wants(plan), (std::vector<bool>{false, false}));
  plan.may_draft = true;
  EXPECT_EQ(wants(plan), (std::vector<bool>{true, false})) << "nobody guesses for b";
  a.drafts = {0, 0};
  ASSERT_TRUE(kv_->Grow(a.blocks, 5));
  plan.entries = {Entry(a, 1)};
  plan.entries[0].num_tokens += 2;
  plan.entries[0].num_drafts = 2;
  for (const bool may_draft : {true, false}) {
    plan.may_draft = may_draft;
    EXPECT_EQ(wants(plan), (std::vector<bool>{true, true, false}));
  }
}

// A sequence whose guesses were wrong asks for few: of 16 steps, here, for one.
TEST_F(StepBuilderTest, AsksForFewGuessesWhereTheyAreWrong) {
  Generation& a = Make({10, 11, 12}, 2, 0);
  a.speculator.emplace(std::make_unique<ModelDrafter>(), 2, /*num_tokens=*/3);
  std::vector<TokenId> tokens = {10, 11, 12};
  for (int i = 0; i < 8; ++i) {
    a.speculator->Learn({1});
    tokens.push_back(2);
    a.speculator->Guess(tokens);
  }
  int num_guesses = 0;
  for (int i = 0; i < 16; ++i) {
    a.num_computed = a.num_scheduled = a.num_tokens() - 1;
    ASSERT_TRUE(kv_->Grow(a.blocks, a.num_tokens()));
    Plan plan;
    plan.may_draft = true;
    plan.entries = {Entry(a, 1)};
    const step::StepDescriptor step = Build(plan);
    ASSERT_EQ(step.rows.size(), 1u);
    if ((step.rows[0].wants & step::kWantGuess) != 0) ++num_guesses;
    a.tokens.push_back(2);
  }
  EXPECT_EQ(num_guesses, 1);
}

// Once it is of no use to any sequence of the step, and the step computes nothing of a prompt.
TEST_F(StepBuilderTest, SkipsTheGuesserWhereItIsOfNoUse) {
  Generation& a = Make({10, 11, 12}, 2, 0);
  Generation& b = Make({20, 21, 22}, 2, 1);
  for (Generation* generation : {&a, &b}) {
    generation->num_computed = generation->num_scheduled = 3;
    generation->tokens.push_back(5);
    ASSERT_TRUE(kv_->Grow(generation->blocks, 4));
  }
  const StepBuilder guessing(4, 2, /*guesses=*/true);
  const auto skips = [](const StepBuilder& builder, const Plan& plan) {
    step::StepDescriptor step;
    builder.Build(plan, step);
    return step.skips_guesser;
  };
  DraftRecord record;
  a.speculator.emplace(std::make_unique<ModelDrafter>(), 2, /*num_tokens=*/4, &record);
  Plan both, only_a, only_b, prompt;
  both.entries = {Entry(a, 1), Entry(b, 1)};
  only_a.entries = {Entry(a, 1)};
  only_b.entries = {Entry(b, 1)};
  EXPECT_FALSE(skips(guessing, only_a));
  EXPECT_FALSE(skips(guessing, both));
  EXPECT_TRUE(skips(guessing, only_b)) << "it has no speculation";

  std::vector<TokenId> tokens = a.tokens;
  while (!a.speculator->has_given_up()) {
    a.speculator->Learn({1});
    tokens.push_back(2);
    a.speculator->Guess(tokens);
  }
  EXPECT_TRUE(skips(guessing, both));
  EXPECT_FALSE(skips(builder_, both)) << "nobody guesses";
  Generation& c = Make({30, 31}, 0, 2);
  prompt.entries = {Entry(a, 1), Entry(c, 2)};
  EXPECT_FALSE(skips(guessing, prompt));
}

TEST(GroupByAdapterTest, DecodesThenPrefillsEachByAdapterInOrder) {
  std::vector<std::unique_ptr<Generation>> generations;
  Plan plan;
  const auto add = [&](Phase phase, uint32_t adapter) {
    Request request;
    request.prompt = {1};
    request.adapter = adapter;
    generations.push_back(std::make_unique<Generation>(generations.size(), std::move(request)));
    plan.entries.push_back({.sequence = generations.back().get(), .phase = phase});
  };
  for (const uint32_t adapter : {2u, 0u, 1u, 2u}) add(Phase::kDecode, adapter);  // 0 to 3
  for (const uint32_t adapter : {1u, 0u, 1u}) add(Phase::kPrefill, adapter);     // 4 to 6
  GroupByAdapter(plan);
  std::vector<uint64_t> order;
  for (const PlanEntry& entry : plan.entries) order.push_back(entry.sequence->handle);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 2, 0, 3, 5, 4, 6}));
}

}  // namespace
}  // namespace tandem::coordinator
