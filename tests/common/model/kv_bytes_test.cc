#include "common/model/kv_bytes.h"

#include <gtest/gtest.h>

#include "common/model/human_bytes.h"

namespace tandem::model {
namespace {

ModelSpec Spec() {
  ModelSpec spec;
  spec.num_layers = 5;
  spec.num_heads = 6;
  spec.num_kv_heads = 3;
  spec.head_dim = spec.value_dim = 64;
  spec.ffn_size = 64;
  spec.vocab_size = 64;
  // Two groups, as a model with sliding windows has: the sum is over both.
  spec.kv_groups = {{0, {0, 2, 4}}, {128, {1, 3}}};
  return spec;
}

TEST(KvBytesTest, CountTheKvHeadsThatTheRankHolds) {
  const ModelSpec spec = Spec();
  const ShardPlan whole = *MakeShardPlan(spec, 0, 1);
  EXPECT_EQ(KvBytesPerToken(spec, whole, tensor::Type::kF16), 5u * 3 * (64 + 64) * 2);
  EXPECT_EQ(KvBytesPerToken(spec, whole, tensor::Type::kF32), 5u * 3 * (64 + 64) * 4);
  const ShardPlan half = *MakeShardPlan(spec, 0, 2);  // two KV heads: one is shared
  EXPECT_EQ(KvBytesPerToken(spec, half, tensor::Type::kF16), 5u * 2 * (64 + 64) * 2);
  EXPECT_EQ(KvBytesPerToken(spec, half, spec.kv_groups[1], tensor::Type::kF16),
            2u * 2 * (64 + 64) * 2);
}

TEST(KvBytesTest, EveryGroupHasItsOwnHeadsAndReadersCostNothing) {
  ModelSpec spec = Spec();
  spec.kv_groups = {{0, {0, 2}}, {128, {1}, HeadSizes{1, 128, 128}, {{3, 1}, {4, 1}}}};
  const ShardPlan whole = *MakeShardPlan(spec, 0, 1);
  EXPECT_EQ(KvBytesPerToken(spec, whole, tensor::Type::kF16),
            2u * 3 * (64 + 64) * 2 + 1u * (128 + 128) * 2);
}

TEST(KvBytesTest, RowsOfEveryType) {
  ModelSpec spec = Spec();
  spec.value_dim = 96;
  const ShardPlan whole = *MakeShardPlan(spec, 0, 1);
  EXPECT_EQ(KvBytesPerToken(spec, whole, tensor::Type::kBF16), 5u * 3 * (64 + 96) * 2);
  // Blocks of 32 values in 34 bytes.
  EXPECT_EQ(KvBytesPerToken(spec, whole, tensor::Type::kQ8_0), 5u * 3 * (2 + 3) * 34);
}

TEST(KvBytesDeathTest, RowsThatAreNotWholeBlocksAreABug) {
  ModelSpec spec = Spec();
  spec.head_dim = 80;
  EXPECT_DEATH(KvBytesPerToken(spec, *MakeShardPlan(spec, 0, 1), tensor::Type::kQ8_0), "80");
}

TEST(KvBytesTest, LatentRowsHaveNoV) {
  ModelSpec spec = Spec();
  spec.mla =
      MlaSpec{.q_rank = 0, .kv_rank = 64, .rope_dims = 32, .nope_dims = 32, .value_dims = 32};
  spec.num_kv_heads = 1;
  spec.head_dim = 96;
  spec.value_dim = 64;
  EXPECT_EQ(KvBytesPerToken(spec, *MakeShardPlan(spec, 1, 2), tensor::Type::kF16), 5u * 96 * 2);
}

TEST(HumanBytesTest, ThreeDigits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(1023 * 1024 + 900), "1 MiB");
  EXPECT_EQ(HumanBytes(uint64_t{5} << 30), "5 GiB");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16 EiB");
}

}  // namespace
}  // namespace tandem::model
