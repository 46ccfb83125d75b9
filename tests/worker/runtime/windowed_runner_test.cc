// A model whose layers all have a window of 20 tokens: blocks that no token sees may be missing,
// any other may not. Every step brings its whole table, as if the sequence were new in its slot.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/runtime/runner_rig.h"
#include "worker/runtime/model_runner.h"

namespace tandem::worker {
namespace {

using Blocks = std::vector<BlockId>;

constexpr uint32_t kBlockSize = 8;

class WindowedRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto model = LoadLlama("cpu", 0, 1, "tests/golden/arch/phi3-partial-swa/model.gguf");
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_EQ(model_->spec().kv_groups.size(), 1u);
    ASSERT_EQ(model_->spec().kv_groups[0].window_tokens, 20u);
    RunnerOptions options;
    options.config.cache.kv_cache_type = tensor::Type::kF32;
    options.config.cache.block_size = kBlockSize;
    options.config.limits.max_num_seqs = 1;
    options.config.limits.max_num_batched_tokens = 64;
    options.config.model.spec.max_model_len = 64;
    options.config.cache.num_kv_blocks = 100;
    options.config.transport.max_result_bytes.bytes = 1 << 20;
    runner_ = std::make_unique<ModelRunner>(*model_, options);
    auto plan = runner_->Prepare();
    ASSERT_TRUE(plan.ok()) << plan.status();
    // One sequence of up to 64 tokens, twice.
    ASSERT_EQ(plan->kv.NumBlocks(plan->num_kv_blocks), (std::vector<uint32_t>{16}));
    ASSERT_TRUE(runner_->Start(Epoch{1}, {16}, nullptr).ok());
  }

  // Tokens [begin, end) of one sequence; the logits of the last.
  absl::StatusOr<std::vector<float>> Run(uint32_t begin, uint32_t end, Blocks blocks) {
    step::StepDescriptor step;
    step.step_id = StepId{++last_step_};
    step.epoch = Epoch{1};
    step.kind = step::StepKind::kPrefill;
    step.num_scheduled_tokens = end - begin;
    step.num_seqs_active = 1;
    step.query_offsets = {0, end - begin};
    step.sequences = {{.slot = 0, .query_len = end - begin, .context_len = end}};
    step.groups.resize(1);
    for (uint32_t p = begin; p < end; ++p) {
      step.tokens.push_back(static_cast<TokenId>((p * 37 + 11) % 300));
      step.positions.push_back(static_cast<int32_t>(p));
      step.groups[0].slot_mapping.push_back(blocks[p / kBlockSize] *
                                                static_cast<int32_t>(kBlockSize) +
                                            static_cast<int32_t>(p % kBlockSize));
    }
    const auto live =
        std::find_if(blocks.begin(), blocks.end(), [](BlockId block) { return block != kNoBlock; });
    step.groups[0].tables = {{.length_before = 0,
                              .length_after = static_cast<uint32_t>(blocks.size()),
                              .first_live = static_cast<uint32_t>(live - blocks.begin())}};
    step.groups[0].blocks.assign(live, blocks.end());
    step.rows = {
        {.token = end - begin - 1, .wants = step::kWantLogits, .top_n = 0, .logprobs_of = {}}};
    auto result = runner_->Run(step, Deadline::After(std::chrono::seconds(30)));
    if (!result.ok()) return result.status();
    return std::move(result->rows[0].logits);
  }

  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<ModelRunner> runner_;
  uint64_t last_step_ = 0;
};

TEST_F(WindowedRunnerTest, BlocksBehindTheWindowAreNotReadAndOthersMustBeThere) {
  ASSERT_TRUE(Run(0, 40, {0, 1, 2, 3, 4}).ok());
  const auto whole = Run(40, 41, {0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(whole.ok()) << whole.status();
  // Position 40 sees 21..40: blocks 2 to 5.
  const auto without = Run(40, 41, {kNoBlock, kNoBlock, 2, 3, 4, 5});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(*without, *whole);
  // Its own first block, released and allocated again.
  const auto reused = Run(40, 41, {kNoBlock, kNoBlock, 2, 3, 4, 0});
  ASSERT_TRUE(reused.ok()) << reused.status();
  EXPECT_EQ(*reused, *whole);

  const absl::Status refused = Run(40, 41, {kNoBlock, kNoBlock, kNoBlock, 3, 4, 5}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(refused.message())
                .find("lives from block 3, but position 40 sees from position 21"),
            std::string::npos)
      << refused;
  // Of several tokens the first decides: position 35 sees from 16 on, position 34 from 15 on.
  EXPECT_TRUE(Run(35, 42, {kNoBlock, kNoBlock, 2, 3, 4, 5}).ok());
  EXPECT_FALSE(Run(34, 42, {kNoBlock, kNoBlock, 2, 3, 4, 5}).ok());
}

TEST_F(WindowedRunnerTest, ChunksThatReleaseBlocksEqualOnePrefill) {
  const auto whole = Run(0, 60, {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(Run(0, 20, {8, 9, 10}).ok());
  ASSERT_TRUE(Run(20, 30, {8, 9, 10, 11}).ok());
  ASSERT_TRUE(Run(30, 50, {kNoBlock, 9, 10, 11, 8, 12, 13}).ok());
  const auto chunked = Run(50, 60, {kNoBlock, kNoBlock, kNoBlock, 11, 8, 12, 13, 9});
  ASSERT_TRUE(chunked.ok()) << chunked.status();
  EXPECT_EQ(*chunked, *whole);
}

}  // namespace
}  // namespace tandem::worker
