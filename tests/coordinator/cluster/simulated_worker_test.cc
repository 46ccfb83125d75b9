// The simulated worker is what the engine's tests stand on, so it must notice what they look for.
#include "tests/coordinator/cluster/simulated_worker.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

Deadline Later() { return Deadline::After(std::chrono::minutes(1)); }

// One worker with 8 blocks of 2 tokens and a sequence whose block table is given.
class SimulatedWorkerTest : public testing::Test {
 protected:
  void SetUp() override { Bring(worker_); }

  static void Bring(SimulatedWorker& worker) {
    const config::WorkerConfig config = {
        .model = {.spec = {.max_model_len = 16}},
        .cache = {.block_size = 2},
        .limits = {.max_num_seqs = 2, .max_num_batched_tokens = 16}};
    ASSERT_TRUE(worker.Configure(config, {.epoch = Epoch{1}}).ok());
    ASSERT_TRUE(worker.Start({8}).ok());
    ASSERT_TRUE(worker.FinishStart(Later()).ok());
  }

  // Computes tokens [begin, tokens.size()) of a sequence; the last one's state decides the token.
  absl::StatusOr<TokenId> Run(const std::vector<TokenId>& tokens, uint32_t begin,
                              const std::vector<BlockId>& table) {
    step::StepDescriptor step;
    step.step_id = StepId{++last_step_};
    step.epoch = Epoch{1};
    step.kind = step::StepKind::kMixed;
    step.tokens.assign(tokens.begin() + begin, tokens.end());
    step.num_scheduled_tokens = static_cast<uint32_t>(step.tokens.size());
    step.num_seqs_active = 1;
    step.query_offsets = {0, step.num_scheduled_tokens};
    step.sequences = {{.slot = 0,
                       .query_len = step.num_scheduled_tokens,
                       .context_len = static_cast<uint32_t>(tokens.size())}};
    step.groups = {{.tables = {{.length_after = static_cast<uint32_t>(table.size())}},
                    .blocks = table,
                    .slot_mapping = {}}};
    for (uint32_t p = begin; p < tokens.size(); ++p) {
      step.positions.push_back(static_cast<int32_t>(p));
      step.groups[0].slot_mapping.push_back(table[p / 2] * 2 + static_cast<int32_t>(p % 2));
    }
    step.rows = {{.token = step.num_scheduled_tokens - 1}};
    step.sampling = {{.temperature = 0, .position = tokens.size()}};
    std::vector<uint8_t> frame;
    step::Serialize(step, frame);
    if (absl::Status status = worker_.Submit(frame, Later()); !status.ok()) return status;
    const auto result = worker_.Collect(Later());
    if (!result.ok()) return result.status();
    if (!result->status.ok()) return result->status;
    return result->rows[0].tokens[0];
  }

  // A vocabulary so large that two different states hardly give one token.
  SimulatedWorker worker_{0, SimulatedModel{.vocab_size = 1u << 30, .window_tokens = {0}}, {8}};
  uint64_t last_step_ = 0;
};

TEST_F(SimulatedWorkerTest, TokensDependOnlyOnTheContextNotOnBlocksOrChunks) {
  const std::vector<TokenId> tokens = {5, 6, 7, 8, 9};
  const TokenId whole = *Run(tokens, 0, {0, 1, 2});
  EXPECT_EQ(*Run(tokens, 0, {5, 3, 7}), whole);
  for (uint32_t n = 1; n <= 5; ++n) {
    const std::vector<TokenId> part(tokens.begin(), tokens.begin() + n);
    const TokenId last = *Run(part, n - 1, {6, 4, 2});
    if (n == 5) {
      EXPECT_EQ(last, whole);
    }
  }
}

TEST_F(SimulatedWorkerTest, EveryEarlierTokenMatters) {
  std::set<TokenId> results = {*Run({5, 6, 7, 8, 9}, 0, {0, 1, 2})};
  for (size_t i = 0; i < 5; ++i) {
    std::vector<TokenId> tokens = {5, 6, 7, 8, 9};
    tokens[i] = 77;
    results.insert(*Run(tokens, 0, {0, 1, 2}));
  }
  EXPECT_EQ(results.size(), 6u);
}

TEST_F(SimulatedWorkerTest, AWrongBlockChangesTheToken) {
  const std::vector<TokenId> tokens = {5, 6, 7, 8, 9};
  const TokenId right = *Run(tokens, 0, {0, 1, 2});
  ASSERT_TRUE(Run({5, 6, 7, 1}, 0, {3, 4}).ok());
  EXPECT_EQ(*Run(tokens, 4, {0, 1, 2}), right);
  EXPECT_NE(*Run(tokens, 4, {0, 4, 2}), right);  // the last token of block 4 differs
  EXPECT_NE(*Run(tokens, 4, {1, 0, 2}), right);
  EXPECT_NE(*Run(tokens, 4, {0, 6, 2}), right);  // never written
}

// The same tokens after another prefix have other K and V: a stale prefix hit shows.
TEST_F(SimulatedWorkerTest, TheSameBlockBehindAnotherPrefixIsAnother) {
  const TokenId right = *Run({5, 6, 7, 8, 9}, 0, {0, 1, 2});
  ASSERT_TRUE(Run({1, 2, 7, 8, 9}, 0, {3, 4, 5}).ok());
  EXPECT_NE(*Run({5, 6, 7, 8, 9}, 4, {0, 4, 2}), right);
}

TEST_F(SimulatedWorkerTest, SamplingUsesSeedPositionAndBans) {
  const SimulatedModel model;
  const step::RowSampling greedy{.temperature = 0};
  const TokenId token = model.Sample(12345, greedy);
  step::RowSampling other = greedy;
  other.seed = 9;
  EXPECT_EQ(model.Sample(12345, other), token);
  other.adjustments = {{.id = token, .bias = -std::numeric_limits<float>::infinity()}};
  EXPECT_NE(model.Sample(12345, other), token);
  // Any other adjustment gives another token, most of the time.
  other.adjustments = {{.id = 3, .penalty = 0.5f}};
  EXPECT_NE(model.Sample(12345, other), token);
  std::set<TokenId> drawn;
  for (uint64_t position = 0; position < 20; ++position) {
    drawn.insert(model.Sample(12345, {.temperature = 1, .seed = 1, .position = position}));
  }
  EXPECT_GT(drawn.size(), 10u);
  const std::vector<float> logits = model.Logits(12345);
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), token);
}

}  // namespace
}  // namespace tandem::coordinator
