// ModelRunner's own promises; that its numbers are right is tests/cluster/golden_test.cc's
// business.
#include "worker/runtime/model_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/worker/runtime/runner_rig.h"

namespace tandem::worker {
namespace {

class ModelRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto model = LoadLlama("cpu");
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    options_ = {
        .config = {
            .model = {.spec = {.max_model_len = 64}},
            .cache = {.block_size = 8, .num_kv_blocks = 4, .kv_cache_type = tensor::Type::kF32},
            .limits = {.max_num_seqs = 2, .max_num_batched_tokens = 16},
            .transport = {.max_result_bytes = {1 << 20}}}};
  }

  std::unique_ptr<ModelRunner> StartRunner() {
    auto runner = std::make_unique<ModelRunner>(*model_, options_);
    EXPECT_TRUE(runner->Prepare().ok());
    EXPECT_TRUE(runner->Start(Epoch{3}, {4}, nullptr).ok());
    return runner;
  }

  // Prefills tokens 1, 2, 3 into block 2 and samples greedily.
  static step::StepDescriptor Step(uint64_t id) {
    step::StepDescriptor step;
    step.step_id = StepId{id};
    step.epoch = Epoch{3};
    step.kind = step::StepKind::kPrefill;
    step.num_scheduled_tokens = 3;
    step.num_seqs_active = 1;
    step.tokens = {1, 2, 3};
    step.positions = {0, 1, 2};
    step.query_offsets = {0, 3};
    step.sequences = {{.slot = 0, .query_len = 3, .context_len = 3}};
    step.groups = {{.tables = {{0, 1, 0}}, .blocks = {2}, .slot_mapping = {16, 17, 18}}};
    step.rows = {{.token = 2, .wants = step::kWantSample, .top_n = 0, .logprobs_of = {}}};
    step.sampling.resize(1);
    step.sampling[0].temperature = 0;
    step.sampling[0].position = 3;
    return step;
  }

  std::unique_ptr<LoadedModel> model_;
  RunnerOptions options_;
};

TEST_F(ModelRunnerTest, TheSameStepGivesTheSameToken) {
  auto runner = StartRunner();
  auto first = runner->Run(Step(1), Soon());
  auto second = runner->Run(Step(2), Soon());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  ASSERT_EQ(first->rows.size(), 1u);
  ASSERT_EQ(first->rows[0].tokens.size(), 1u);
  EXPECT_EQ(first->rows[0].tokens, second->rows[0].tokens);
  EXPECT_EQ(first->step_id, StepId{1});
}

TEST_F(ModelRunnerTest, RefusesWhatItCannotRunAndStaysAsItWas) {
  auto runner = StartRunner();
  const auto before = runner->Run(Step(1), Soon());
  ASSERT_TRUE(before.ok()) << before.status();

  step::StepDescriptor other_epoch = Step(2);
  other_epoch.epoch = Epoch{2};
  EXPECT_EQ(runner->Run(other_epoch, Soon()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  step::StepDescriptor far_block = Step(2);
  far_block.groups[0].blocks = {4};
  EXPECT_EQ(runner->Run(far_block, Soon()).status().code(), absl::StatusCode::kInvalidArgument);
  step::StepDescriptor no_table = Step(2);
  no_table.groups[0].tables[0].length_before = 2;
  EXPECT_EQ(runner->Run(no_table, Soon()).status().code(), absl::StatusCode::kInvalidArgument);

  // The table has the one block that the first step gave it, and not what the refused ones said.
  step::StepDescriptor next = Step(2);
  next.kind = step::StepKind::kDecode;
  next.num_scheduled_tokens = 1;
  next.tokens = {4};
  next.positions = {3};
  next.query_offsets = {0, 1};
  next.sequences = {{.slot = 0, .query_len = 1, .context_len = 4}};
  next.groups = {{.tables = {{1, 1, 0}}, .blocks = {}, .slot_mapping = {19}}};
  next.rows[0].token = 0;
  EXPECT_EQ(runner->Run(next, Soon()).status(), absl::OkStatus());
  const auto after = runner->Run(Step(2), Soon());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->rows[0].tokens, before->rows[0].tokens);
}

// Tokens [begin, end) of one sequence, which gets its blocks as it grows.
step::StepDescriptor Growing(uint64_t id, uint32_t begin, uint32_t end) {
  constexpr BlockId kBlocks[] = {2, 0, 3, 1};
  step::StepDescriptor step;
  step.step_id = StepId{id};
  step.epoch = Epoch{3};
  step.kind = step::StepKind::kMixed;
  step.num_scheduled_tokens = end - begin;
  step.num_seqs_active = 1;
  step.query_offsets = {0, end - begin};
  step.sequences = {{.slot = 1, .query_len = end - begin, .context_len = end}};
  step.groups.resize(1);
  const step::TableDelta delta{(begin + 7) / 8, (end + 7) / 8, 0};
  step.groups[0].tables = {delta};
  for (uint32_t i = delta.length_before; i < delta.length_after; ++i) {
    step.groups[0].blocks.push_back(kBlocks[i]);
  }
  for (uint32_t p = begin; p < end; ++p) {
    step.tokens.push_back(static_cast<TokenId>((p * 37 + 11) % 300));
    step.positions.push_back(static_cast<int32_t>(p));
    step.groups[0].slot_mapping.push_back(kBlocks[p / 8] * 8 + static_cast<int32_t>(p % 8));
  }
  step.rows = {{.token = end - begin - 1, .logprobs_of = {}}};
  step.rows[0].wants |= step::kWantLogits;
  step.sampling.resize(1);
  step.sampling[0].temperature = 0;
  return step;
}

TEST_F(ModelRunnerTest, StepsThatGrowATableGiveWhatOneStepGivesAndReplay) {
  std::vector<step::StepDescriptor> steps;
  for (const uint32_t end : {6u, 16u, 17u, 18u, 23u, 24u, 25u, 32u}) {
    const uint32_t begin = steps.empty() ? 0 : steps.back().sequences[0].context_len;
    steps.push_back(Growing(steps.size() + 1, begin, end));
  }
  auto runner = StartRunner();
  std::vector<step::StepResult> results;
  for (const step::StepDescriptor& step : steps) {
    auto result = runner->Run(step, Soon());
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*std::move(result));
  }
  // The same with a table that is sent whole.
  step::StepDescriptor last = steps.back();
  last.groups[0].tables[0].length_before = 0;
  last.groups[0].blocks = {2, 0, 3, 1};
  const auto again = runner->Run(last, Soon());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->rows, results.back().rows);
  // A fresh runner, from the start of the epoch and from the middle.
  auto fresh = StartRunner();
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto result = fresh->Run(steps[i], Soon());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows, results[i].rows) << i;
  }
  EXPECT_EQ(StartRunner()->Run(steps[4], Soon()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ModelRunnerTest, BeginAndFinishAreTheHalvesOfAStep) {
  auto runner = StartRunner();
  const auto whole = runner->Run(Step(1), Soon());
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto ticket = runner->Begin(Step(2), Soon());
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  const auto result = runner->Finish(*ticket);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step_id, StepId{2});
  EXPECT_EQ(result->rows, whole->rows);
}

// A prefill of `count` tokens that requests everything of every row.
step::StepDescriptor EveryRow(uint32_t count, uint32_t wants) {
  step::StepDescriptor step;
  step.step_id = StepId{1};
  step.epoch = Epoch{3};
  step.kind = step::StepKind::kPrefill;
  step.num_scheduled_tokens = count;
  step.num_seqs_active = 1;
  step.query_offsets = {0, count};
  step.sequences = {{.slot = 0, .query_len = count, .context_len = count}};
  step.groups.resize(1);
  step.groups[0].tables = {{0, (count + 7) / 8, 0}};
  for (uint32_t b = 0; b < (count + 7) / 8; ++b) {
    step.groups[0].blocks.push_back(static_cast<BlockId>(b));
  }
  for (uint32_t t = 0; t < count; ++t) {
    step.tokens.push_back(static_cast<TokenId>((t * 37 + 11) % 300));
    step.positions.push_back(static_cast<int32_t>(t));
    step.groups[0].slot_mapping.push_back(static_cast<int32_t>(t));
    step::RowRequest row{.token = t, .wants = wants, .top_n = 0, .logprobs_of = {}};
    if (wants & step::kWantTopLogprobs) row.top_n = 1 + t % 20;
    if (wants & step::kWantLogprobsOf) row.logprobs_of = {static_cast<TokenId>(t), 322};
    step.rows.push_back(row);
  }
  for (uint32_t t : {2u, count - 1}) {  // in different slices
    step.rows[t].wants |= step::kWantSample | step::kWantSampleLogprob;
    step.sampling.push_back({.temperature = t == 2 ? 0.0f : 2.0f, .seed = 5, .position = t + 1});
  }
  return step;
}

void ExpectLogprob(const step::TokenLogprob& is, TokenId token, const std::vector<float>& logits) {
  double largest = logits[0], sum = 0;
  for (float logit : logits) largest = std::max<double>(largest, logit);
  for (float logit : logits) sum += std::exp(logit - largest);
  const float logit = logits[static_cast<size_t>(token)];
  EXPECT_EQ(is.token, token);
  EXPECT_NEAR(is.logprob, logit - largest - std::log(sum), 1e-5);
  EXPECT_EQ(is.rank, 1 + std::count_if(logits.begin(), logits.end(),
                                       [&](float other) { return other > logit; }));
}

TEST_F(ModelRunnerTest, LogprobsOfMoreRowsThanSequences) {
  options_.config.limits.max_num_batched_tokens = 40;
  options_.config.cache.num_kv_blocks = 5;
  ModelRunner runner(*model_, options_);
  ASSERT_TRUE(runner.Prepare().ok());
  ASSERT_TRUE(runner.Start(Epoch{3}, {5}, nullptr).ok());
  const step::StepDescriptor step =
      EveryRow(40, step::kWantLogits | step::kWantTopLogprobs | step::kWantLogprobsOf);
  const auto result = runner.Run(step, Soon());
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->rows.size(), 40u);
  for (uint32_t t = 0; t < 40; ++t) {
    SCOPED_TRACE(t);
    const step::RowResult& row = result->rows[t];
    const bool samples = t == 2 || t == 39;
    ASSERT_EQ(row.tokens.size(), samples ? 1u : 0u);
    ASSERT_EQ(row.logits.size(), 323u);
    ASSERT_EQ(row.logprobs.size(), (samples ? 1 : 0) + 2 + 1 + t % 20);
    size_t next = 0;
    if (samples) ExpectLogprob(row.logprobs[next++], row.tokens[0], row.logits);
    ExpectLogprob(row.logprobs[next++], static_cast<TokenId>(t), row.logits);
    ExpectLogprob(row.logprobs[next++], 322, row.logits);
    std::vector<float> sorted = row.logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (size_t i = 0; next < row.logprobs.size(); ++next, ++i) {
      const TokenId token = row.logprobs[next].token;
      EXPECT_EQ(row.logits[static_cast<size_t>(token)], sorted[i]);
      ExpectLogprob(row.logprobs[next], token, row.logits);
    }
  }
  // The other rows do not matter to a row, nor does the slice that it is in.
  step::StepDescriptor one = step;
  one.step_id = StepId{2};
  one.rows = {step.rows[39]};
  one.sampling = {step.sampling[1]};
  const auto alone = runner.Run(one, Soon());
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->rows[0], result->rows[39]);
}

TEST_F(ModelRunnerTest, ManyRowsNeedNoMoreMemory) {
  options_.config.cache.num_kv_blocks = 5;
  const auto few = ModelRunner(*model_, options_).Prepare();
  ASSERT_TRUE(few.ok()) << few.status();
  options_.config.limits.max_num_seqs = 16;
  const auto many = ModelRunner(*model_, options_).Prepare();
  ASSERT_TRUE(many.ok()) << many.status();
  // The head's slices have 16 rows either way.
  EXPECT_EQ(few->activation_bytes, many->activation_bytes);
}

TEST_F(ModelRunnerTest, RefusesMoreSamplesThanAreDrawnAtOnce) {
  options_.config.limits.max_num_batched_tokens = 40;
  options_.config.cache.num_kv_blocks = 5;
  options_.config.limits.max_num_seqs = 1;
  ModelRunner runner(*model_, options_);
  ASSERT_TRUE(runner.Prepare().ok());
  ASSERT_TRUE(runner.Start(Epoch{3}, {5}, nullptr).ok());
  step::StepDescriptor step = EveryRow(40, step::kWantSample);
  step.sampling.assign(8, {.temperature = 0.0f, .position = 1});
  for (uint32_t t = 8; t < 40; ++t) step.rows[t].wants = step::kWantLogits;
  const auto eight = runner.Run(step, Soon());
  ASSERT_TRUE(eight.ok()) << eight.status();
  for (uint32_t t = 0; t < 8; ++t) EXPECT_EQ(eight->rows[t].tokens.size(), 1u);
  step.step_id = StepId{2};
  step.rows[8].wants = step::kWantSample;
  step.sampling.push_back(step.sampling.back());
  const absl::Status status = runner.Run(step, Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("9 samples are wanted, at most 8"), absl::string_view::npos)
      << status;
}

TEST_F(ModelRunnerTest, PrepareNamesWhatDoesNotFit) {
  options_.config.model.spec.max_model_len = 1 << 20;
  EXPECT_EQ(ModelRunner(*model_, options_).Prepare().status().code(),
            absl::StatusCode::kInvalidArgument);
  options_.config.model.spec.max_model_len = 64;
  options_.config.cache.num_kv_blocks = 0;
  options_.kv_cache_bytes = 100;
  EXPECT_EQ(ModelRunner(*model_, options_).Prepare().status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ModelRunnerTest, ALiveWorkersNextEpochGetsFreshPages) {
  auto runner = StartRunner();
  ASSERT_TRUE(runner->Run(Step(1), Soon()).ok());
  ASSERT_TRUE(runner->Start(Epoch{4}, {4}, nullptr).ok());
  EXPECT_FALSE(runner->Run(Step(1), Soon()).ok());
  step::StepDescriptor step = Step(1);
  step.epoch = Epoch{4};
  EXPECT_TRUE(runner->Run(step, Soon()).ok());
}

TEST(DescribeModelTest, AnotherFileIsRefusedByItsFingerprint) {
  LoadOptions options = LlamaOptions("cpu");
  options.assignment.model_fingerprint = 12345;
  const absl::Status status = DescribeModel(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("fingerprint"), absl::string_view::npos);
}

}  // namespace
}  // namespace tandem::worker
