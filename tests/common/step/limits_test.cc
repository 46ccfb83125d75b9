#include "common/step/limits.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/config/worker_config.h"
#include "common/step/block_tables.h"
#include "common/step/codec.h"
#include "common/step/descriptor.h"
#include "gtest/gtest.h"

namespace tandem::step {
namespace {

constexpr uint32_t kMaxTableBlocks = 512;

StepLimits Limits(uint32_t tokens, uint32_t seqs) {
  return {.max_tokens = tokens,
          .max_seqs = seqs,
          .max_model_len = kMaxTableBlocks * 4,
          .vocab_size = kMaxMaskedVocabulary,
          .block_size = 4,
          .num_blocks = {1 << 20, 1 << 20},
          .max_result_bytes = 1 << 30};
}

// All `seqs` sequences are new and bring a table of `length` blocks to both groups, the tokens are
// shared out, every row asks for all that it may, every sample adjusts as many logits as it may
// and has a mask.
StepDescriptor Largest(const StepLimits& limits, uint32_t length) {
  StepDescriptor step;
  step.step_id = StepId{1};
  step.num_scheduled_tokens = limits.max_tokens;
  step.num_seqs_active = limits.max_seqs;
  step.query_offsets = {0};
  step.groups.resize(model::kMaxKvGroups);
  const uint32_t query_len = limits.max_tokens / limits.max_seqs;
  uint32_t more_samples = limits.MaxSamples() - limits.max_seqs;  // than one of each
  for (uint32_t s = 0; s < limits.max_seqs; ++s) {
    step.sequences.push_back({.slot = s, .query_len = query_len, .context_len = query_len});
    for (GroupDeltas& group : step.groups) {
      const auto first = static_cast<BlockId>(group.blocks.size());
      group.tables.push_back({.length_before = 0, .length_after = length, .first_live = 0});
      for (uint32_t b = 0; b < length; ++b) group.blocks.push_back(first + static_cast<int>(b));
      for (uint32_t p = 0; p < query_len; ++p) {
        group.slot_mapping.push_back(first * 4 + static_cast<int32_t>(p));
      }
    }
    for (uint32_t p = 0; p < query_len; ++p) {
      const bool is_last = p + 1 == query_len;
      const bool samples = is_last || more_samples > 0;
      if (samples && !is_last) --more_samples;
      step.rows.push_back({.token = static_cast<uint32_t>(step.tokens.size()),
                           .wants = kWantLogprobsOf | (samples ? kWantSample : 0u),
                           .logprobs_of = std::vector<TokenId>(kMaxLogprobsOf, 7)});
      step.tokens.push_back(1);
      step.positions.push_back(static_cast<int32_t>(p));
      if (!samples) continue;
      step.sampling.push_back({.position = p + 1, .adjustments = {}});
      step.sampling.back().allowed.assign(MaskWords(limits.vocab_size), 1);
      for (size_t i = 0; i < kMaxRowAdjustments; ++i) {
        step.sampling.back().adjustments.push_back({.id = static_cast<TokenId>(i)});
      }
    }
    step.query_offsets.push_back(static_cast<uint32_t>(step.tokens.size()));
  }
  return step;
}

TEST(StepLimitsTest, NoDescriptorThatIsValidExceedsTheBound) {
  std::vector<uint8_t> frame;
  for (const uint32_t seqs : {1, 5, 16, 64, 512}) {
    for (const uint32_t query_len : {1, 3, 32}) {
      StepLimits limits = Limits(seqs * query_len, seqs);
      const size_t most = limits.MaxAppendedBlocks() / model::kMaxKvGroups / seqs;
      const auto length = static_cast<uint32_t>(std::min<size_t>(most, kMaxTableBlocks));
      const StepDescriptor step = Largest(limits, length);
      // Where it counts how large results are: as large as this step's.
      limits.max_result_bytes = MaxResultBytes(step, limits.vocab_size, limits.hidden_size);
      ASSERT_EQ(Validate(step, limits, BlockTables(limits)), absl::OkStatus());
      Serialize(step, frame);
      EXPECT_LE(frame.size(), limits.MaxDescriptorBytes()) << seqs << " x " << query_len;
      // Nor is the bound far from what is possible, where tables fill it.
      if (seqs == 512) {
        EXPECT_GT(frame.size(), limits.MaxDescriptorBytes() * 9 / 10);
      }
    }
  }
}

TEST(StepLimitsTest, MasksOfLargerVocabulariesAreRefused) {
  StepLimits limits = Limits(1, 1);
  StepDescriptor step = Largest(limits, 1);
  EXPECT_EQ(Validate(step, limits, BlockTables(limits)), absl::OkStatus());
  ++limits.vocab_size;
  step.sampling[0].allowed.push_back(0);
  EXPECT_EQ(Validate(step, limits, BlockTables(limits)).message(),
            "step: sampling 0 has a mask of 524289 ids, at most 524288 fit");
}

TEST(StepLimitsTest, MoreBlocksThanFitAreRefused) {
  const StepLimits limits = Limits(128, 128);
  EXPECT_EQ(limits.MaxAppendedBlocks(), (1u << 16) + 2 * (128 / 4 + 128));
  const absl::Status status = Validate(Largest(limits, 258), limits, BlockTables(limits));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "step: 66048 blocks are appended, at most 65856 fit");
}

TEST(StepLimitsTest, MoreKvGroupsThanThereAreAreRefused) {
  StepLimits limits = Limits(1, 1);
  limits.num_blocks.push_back(1);
  EXPECT_EQ(Validate(Largest(limits, 1), limits, BlockTables(limits)).message(),
            "step: the limits have 3 KV groups, at most 2");
}

TEST(StepLimitsTest, FollowTheConfiguration) {
  config::WorkerConfig config;
  config.model.spec.max_model_len = 1 << 17;
  const StepLimits limits = StepLimits::Of(config);
  EXPECT_EQ(limits.max_tokens, config.limits.max_num_batched_tokens);
  EXPECT_EQ(limits.max_seqs, config.limits.max_num_seqs);
  EXPECT_EQ(limits.max_model_len, 1u << 17);
  EXPECT_EQ(limits.block_size, config.cache.block_size);
  // Results are the larger ones by default.
  EXPECT_LT(limits.MaxDescriptorBytes(), 4u << 20);
  EXPECT_EQ(limits.MaxFrameBytes(), config.transport.max_result_bytes.bytes);
  EXPECT_TRUE(limits.CheckFrameBytes().ok());
}

TEST(StepLimitsTest, ALargeStepMakesALargeChannelOrIsRefused) {
  config::WorkerConfig config;
  config.model.spec.max_model_len = 1 << 20;
  config.limits = {.max_num_seqs = 4096, .max_num_batched_tokens = 1 << 20};
  EXPECT_GT(StepLimits::Of(config).MaxFrameBytes(), 40u << 20);
  EXPECT_TRUE(StepLimits::Of(config).CheckFrameBytes().ok());
  config.model.spec.max_model_len = 2147483647;
  config.cache.block_size = 1;
  const absl::Status refused = StepLimits::Of(config).CheckFrameBytes();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(refused.message())
                .find("--max-num-seqs 4096, --max-num-batched-tokens 1048576 and --max-model-len "
                      "2147483647 in blocks of 1 tokens: a step may take "),
            0u)
      << refused;
}

}  // namespace
}  // namespace tandem::step
