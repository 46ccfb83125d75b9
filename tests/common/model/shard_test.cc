#include "common/model/shard.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::model {
namespace {

ModelSpec Spec(uint32_t heads, uint32_t kv_heads, uint32_t ffn, uint32_t vocab) {
  ModelSpec spec;
  spec.num_layers = 2;
  spec.num_heads = heads;
  spec.num_kv_heads = kv_heads;
  spec.ffn_size = ffn;
  spec.vocab_size = vocab;
  return spec;
}

// With the model's heads.
Range KvHeads(const ModelSpec& spec, int rank, int size) {
  return KvHeadRange(spec, *MakeShardPlan(spec, rank, size),
                     {spec.num_kv_heads, spec.head_dim, spec.value_dim});
}

TEST(ShardPlanTest, OneRankHasEverything) {
  const ModelSpec spec = Spec(8, 2, 192, 323);
  const auto plan = MakeShardPlan(spec, 0, 1);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->heads, (Range{0, 8}));
  EXPECT_EQ(KvHeads(spec, 0, 1), (Range{0, 2}));
  EXPECT_EQ(FfnRange(spec, *plan, 0), (Range{0, 192}));
  EXPECT_EQ(plan->vocab, (Range{0, 323}));
  EXPECT_EQ(plan->vocab_slice_max, 323u);
}

TEST(ShardPlanTest, AKvHeadReadByTwoRanksIsReplicated) {
  const ModelSpec spec = Spec(6, 3, 64, 10);  // KV head 1 serves query heads 2 and 3
  EXPECT_EQ(KvHeads(spec, 0, 2), (Range{0, 2}));
  EXPECT_EQ(KvHeads(spec, 1, 2), (Range{1, 3}));
  const ModelSpec single = Spec(4, 1, 64, 10);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(KvHeads(single, rank, 4), (Range{0, 1})) << rank;
  }
}

TEST(ShardPlanTest, RanksOfLowerNumberHoldOneTokenMore) {
  const ModelSpec spec = Spec(4, 4, 64, 10);
  const Range expected[] = {{0, 3}, {3, 6}, {6, 8}, {8, 10}};
  for (int rank = 0; rank < 4; ++rank) {
    const auto plan = MakeShardPlan(spec, rank, 4);
    EXPECT_EQ(plan->vocab, expected[rank]) << rank;
    EXPECT_EQ(plan->vocab_slice_max, 3u);
  }
}

// Everything is covered without a hole, and every rank's query heads find their KV heads on the
// rank.
TEST(ShardPlanTest, RangesTileForEverySize) {
  for (const ModelSpec& spec : {Spec(6, 3, 160, 323), Spec(14, 2, 4864, 151936),
                                Spec(12, 1, 37, 13), Spec(8, 8, 31, 1000)}) {
    for (int size = 1; size <= static_cast<int>(spec.num_heads); ++size) {
      if (spec.num_heads % size != 0) continue;
      Range heads, ffn, vocab;
      for (int rank = 0; rank < size; ++rank) {
        const auto plan = MakeShardPlan(spec, rank, size);
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(plan->heads, (Range{heads.end, heads.end + spec.num_heads / size}));
        const Range columns = FfnRange(spec, *plan, 0);
        EXPECT_EQ(columns.begin, ffn.end);
        EXPECT_EQ(plan->vocab.begin, vocab.end);
        EXPECT_GE(columns.size(), 1u);
        EXPECT_LE(plan->vocab.size(), plan->vocab_slice_max);
        const uint32_t group = spec.num_heads / spec.num_kv_heads;
        uint32_t lowest = UINT32_MAX, highest = 0;
        for (uint32_t head = plan->heads.begin; head < plan->heads.end; ++head) {
          lowest = std::min(lowest, head / group);
          highest = std::max(highest, head / group);
        }
        EXPECT_EQ(KvHeads(spec, rank, size), (Range{lowest, highest + 1}));
        heads = plan->heads;
        ffn = columns;
        vocab = plan->vocab;
      }
      EXPECT_EQ(heads.end, spec.num_heads);
      EXPECT_EQ(ffn.end, spec.ffn_size);
      EXPECT_EQ(vocab.end, spec.vocab_size);
    }
  }
}

TEST(ShardPlanTest, FfnCutsFallBetweenBlocksWhereTheyCan) {
  for (int rank = 0; rank < 3; ++rank) {
    const ModelSpec spec = Spec(3, 3, 160, 9);
    EXPECT_EQ(FfnRange(spec, *MakeShardPlan(spec, rank, 3), 0).begin % 32, 0u);
  }
  const ModelSpec narrow = Spec(4, 4, 64, 9);  // too few blocks for it
  EXPECT_EQ(FfnRange(narrow, *MakeShardPlan(narrow, 1, 4), 0), (Range{16, 32}));
}

TEST(ShardPlanTest, LayersOfOtherSizesAreCutByTheirOwn) {
  ModelSpec spec = Spec(4, 4, 64, 9);
  spec.layer_ffn_sizes = {32, 64};
  const ShardPlan plan = *MakeShardPlan(spec, 1, 2);
  EXPECT_EQ(FfnRange(spec, plan, 0), (Range{16, 32}));
  EXPECT_EQ(FfnRange(spec, plan, 1), (Range{32, 64}));
  EXPECT_EQ(KvHeadRange(spec, plan, {4, 8, 8}), (Range{2, 4}));
  EXPECT_EQ(KvHeadRange(spec, plan, {1, 16, 16}), (Range{0, 1}));
  spec.layer_ffn_sizes = {3, 64};
  EXPECT_EQ(MakeShardPlan(spec, 0, 4).status(),
            absl::InvalidArgumentError("tensor parallelism over 4 ranks is not possible with 3 FFN "
                                       "columns"));
}

TEST(ShardPlanTest, TheFfnSizeOfNoLayerDoesNotCount) {
  ModelSpec spec = Spec(4, 4, 1, 9);
  spec.moe = MoeSpec{.num_experts = 4, .experts_per_token = 2, .ffn_size = 64};
  EXPECT_TRUE(MakeShardPlan(spec, 0, 4).ok());
  spec.moe->first_layer = 1;
  EXPECT_EQ(MakeShardPlan(spec, 0, 4).status().message(),
            "tensor parallelism over 4 ranks is not possible with 1 FFN columns");
  spec.moe =
      MoeSpec{.num_experts = 4, .experts_per_token = 2, .ffn_size = 64, .beside_dense = true};
  EXPECT_FALSE(MakeShardPlan(spec, 0, 4).ok());
}

TEST(ShardPlanTest, WhatIsImpossibleIsRefusedWithBothNumbers) {
  EXPECT_EQ(
      MakeShardPlan(Spec(6, 3, 64, 10), 0, 4).status(),
      absl::InvalidArgumentError("tensor parallelism over 4 ranks is not possible: 4 does not "
                                 "divide the 6 query heads"));
  EXPECT_EQ(MakeShardPlan(Spec(8, 8, 4, 10), 0, 8).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const auto& [rank, size] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, -1}}) {
    EXPECT_EQ(MakeShardPlan(Spec(8, 8, 64, 10), rank, size).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tandem::model
