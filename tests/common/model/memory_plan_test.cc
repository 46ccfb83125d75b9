#include "common/model/memory_plan.h"

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

MemoryRequest Request() {
  MemoryRequest request;
  request.weights_bytes = 1000;
  request.activation_bytes = 100;
  request.kv_bytes = 10'000;
  request.kv_bytes_per_token = 10;
  request.block_tokens = 16;
  return request;
}

TEST(MemoryPlanTest, WholeBlocksOutOfWhatWasGiven) {
  const auto plan = MakeMemoryPlan(Request());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->bytes_per_block, 160u);
  EXPECT_EQ(plan->num_blocks, 62u);
  EXPECT_EQ(plan->kv_bytes(), 9920u);
  EXPECT_EQ(plan->total_bytes(), 11020u);
  EXPECT_EQ(plan->Text(),
            "weights      1000 B\n"
            "activations  100 B\n"
            "KV cache     9.69 KiB (62 blocks of 16 tokens, 160 B each)\n"
            "total        10.8 KiB\n");
}

TEST(MemoryPlanTest, ANumberOfBlocksGoesBeforeBytes) {
  MemoryRequest request = Request();
  request.num_blocks = 1000;
  EXPECT_EQ(MakeMemoryPlan(request)->kv_bytes(), 160'000u);
}

TEST(MemoryPlanTest, NothingFitsIsRefusedWithBothNumbers) {
  MemoryRequest request = Request();
  request.kv_bytes = 159;
  EXPECT_EQ(
      MakeMemoryPlan(request).status(),
      absl::ResourceExhaustedError("no KV block fits: one of 16 tokens needs 160 bytes, the KV "
                                   "cache was given 159"));
  request.kv_bytes = 160;
  EXPECT_EQ(MakeMemoryPlan(request)->num_blocks, 1u);
}

TEST(MemoryPlanTest, MoreThanThereIsIsRefusedItemByItem) {
  MemoryRequest request = Request();
  request.available_bytes = 11'020;
  EXPECT_TRUE(MakeMemoryPlan(request).ok());
  request.available_bytes = 11'019;
  EXPECT_EQ(MakeMemoryPlan(request).status(),
            absl::ResourceExhaustedError("not enough memory: needed 11020 bytes (weights 1000, "
                                         "activations 100, KV cache 9920), available 11019"));
}

TEST(MemoryPlanTest, SizesThatOverflowAreRefused) {
  MemoryRequest huge = Request();
  huge.kv_bytes_per_token = UINT64_MAX / 4;
  EXPECT_EQ(MakeMemoryPlan(huge).status().code(), absl::StatusCode::kInvalidArgument);
  MemoryRequest many = Request();
  many.num_blocks = UINT64_MAX / 2;
  EXPECT_EQ(MakeMemoryPlan(many).status().code(), absl::StatusCode::kInvalidArgument);
  MemoryRequest none = Request();
  none.block_tokens = 0;
  EXPECT_EQ(MakeMemoryPlan(none).status().code(), absl::StatusCode::kInvalidArgument);
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
