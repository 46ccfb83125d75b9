#include "common/kv/kv_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tandem::kv {
namespace {

using Blocks = std::vector<uint32_t>;

config::WorkerConfig Config(uint32_t block_size, config::LimitsConfig limits, uint32_t length) {
  return {.model = {.spec = {.max_model_len = length}},
          .cache = {.block_size = block_size},
          .limits = limits};
}

const config::WorkerConfig kConfig = Config(16, {4, 64}, 1000);

// Five layers of three KV heads of 64: 768 bytes per layer and token in F16.
model::ModelSpec Spec(std::vector<model::KvGroupSpec> groups) {
  model::ModelSpec spec;
  spec.num_layers = 5;
  spec.num_heads = 6;
  spec.num_kv_heads = 3;
  spec.head_dim = spec.value_dim = 64;
  spec.ffn_size = 64;
  spec.vocab_size = 64;
  spec.kv_groups = std::move(groups);
  return spec;
}

KvShape Shape(std::vector<model::KvGroupSpec> groups, const config::WorkerConfig& config = kConfig,
              int rank = 0, int size = 1) {
  const model::ModelSpec spec = Spec(std::move(groups));
  return MakeKvShape(spec, *model::MakeShardPlan(spec, rank, size), config);
}

const std::vector<model::KvGroupSpec> kTwoGroups = {{0, {0, 2, 4}}, {128, {1, 3}}};

TEST(KvShapeTest, AWindowGetsWhatItsSequencesSpanTwice) {
  const KvShape shape = Shape(kTwoGroups);
  // 127 tokens before the own one: 8 blocks, and one on either side, for 4 sequences; 64 tokens of
  // a step: 4 blocks.
  EXPECT_EQ(shape.groups[1].most_blocks, 2u * (4 * 10 + 4));
  EXPECT_EQ(shape.NumBlocks(1000), (Blocks{1000, 88}));
  EXPECT_EQ(shape.NumBlocks(50), (Blocks{50, 50}));
  EXPECT_EQ(shape.groups[0].bytes_per_block, 16u * 3 * 768);
  EXPECT_EQ(shape.groups[1].bytes_per_block, 16u * 2 * 768);
  EXPECT_EQ(shape.Bytes(1000), 1000u * 16 * 3 * 768 + 88u * 16 * 2 * 768);
  EXPECT_EQ(shape.Text(1000),
            "1000 blocks of 16 tokens, 36 KiB each; 88 for a window of 128 tokens, 24 KiB each");
}

TEST(KvShapeTest, ADraftModelIsInTheBlocksWithFullAttention) {
  KvShape shape = Shape(kTwoGroups);
  const model::ModelSpec draft = Spec({{0, {0, 1, 2, 3, 4}}});
  AddDraftModel(draft, *model::MakeShardPlan(draft, 0, 1), kConfig, shape);
  EXPECT_EQ(shape.groups[0].bytes_per_block, 16u * (3 + 5) * 768);
  EXPECT_EQ(shape.groups[1].bytes_per_block, 16u * 2 * 768);
}

TEST(KvShapeTest, AWindowBeyondTheContextIsTheContext) {
  // 63 blocks of 16 hold 1000 tokens.
  EXPECT_EQ(Shape({{4096, {0, 1, 2, 3, 4}}}).groups[0].most_blocks, 2u * 4 * 63);
  EXPECT_EQ(Shape({{1, {0, 1, 2, 3, 4}}}).groups[0].most_blocks, 2u * (4 * 2 + 4));
}

TEST(KvShapeTest, SnapshotsComeOnTopOfTheBlocks) {
  model::ModelSpec spec = Spec({{0, {0, 2, 4}}});
  spec.delta_net = {
      .key_heads = 2, .value_heads = 4, .head_dim = 8, .conv_taps = 4, .layers = {1, 3}};
  config::WorkerConfig config = kConfig;
  config.cache.state_snapshot_interval = 64;
  const KvShape shape = MakeKvShape(spec, *model::MakeShardPlan(spec, 0, 1), config);
  // Per layer 3 rows of 64 channels, and 4 matrices of 8 by 8.
  EXPECT_EQ(shape.snapshot_bytes, 2u * 4 * (3 * 64 + 4 * 64));
  EXPECT_EQ(shape.NumSnapshots(10), 3u);
  EXPECT_EQ(shape.Bytes(10), 10u * 16 * 3 * 768 + 3 * shape.snapshot_bytes);
  EXPECT_EQ(shape.Text(10),
            "10 blocks of 16 tokens, 36 KiB each; 3 snapshots of a recurrent state, 3.5 KiB each");
  EXPECT_EQ(MostBlocks({&shape, 1}, shape.Bytes(10)), 10u);
  EXPECT_EQ(MostBlocks({&shape, 1}, shape.Bytes(10) - 1), 9u);
}

// The bound of the comment in kv_shape.cc, by trying every way to share out a step's tokens.
TEST(KvShapeTest, NoStepSpansMoreThanHalfOfIt) {
  for (const uint32_t window : {1u, 2u, 3u, 4u, 5u, 8u, 9u}) {
    for (const uint32_t block : {1u, 2u, 3u, 4u, 7u}) {
      const config::WorkerConfig config = Config(block, {3, 12}, 10000);
      uint32_t most = 0;
      const auto spans = [&](uint32_t tokens) {  // of a run that begins at a block's last token
        return tokens == 0 ? 0 : (window - 1 + tokens + block - 2) / block + 1;
      };
      for (uint32_t a = 1; a <= 10; ++a) {
        for (uint32_t b = 1; a + b <= 11; ++b) {
          most = std::max(most, spans(a) + spans(b) + spans(12 - a - b));
        }
      }
      EXPECT_LE(2u * most, Shape({{window, {0, 1, 2, 3, 4}}}, config).groups[0].most_blocks)
          << "window " << window << ", blocks of " << block;
    }
  }
}

TEST(KvShapeTest, MostBlocksIsTheLargestThatFits) {
  for (const auto& groups : {kTwoGroups, {{0, {0, 1, 2, 3, 4}}}}) {
    const std::vector<KvShape> ranks = {Shape(groups, kConfig, 0, 2), Shape(groups, kConfig, 1, 2)};
    for (const uint64_t n : {1ull, 87ull, 88ull, 89ull, 5000ull}) {
      const uint64_t bytes = ranks[0].Bytes(n) + ranks[1].Bytes(n);
      EXPECT_EQ(MostBlocks(ranks, bytes), n);
      EXPECT_EQ(MostBlocks(ranks, bytes - 1), n - 1);
    }
    EXPECT_EQ(MostBlocks(ranks, 0), 0u);
    EXPECT_EQ(MostBlocks(ranks, std::numeric_limits<uint64_t>::max()), MostAddressableBlocks(16));
  }
}

TEST(KvShapeTest, AWindowAloneNeverTakesAllMemory) {
  const std::vector<KvShape> rank = {Shape({{128, {0, 1, 2, 3, 4}}})};
  EXPECT_EQ(MostBlocks(rank, 1ull << 50), 88u);
  EXPECT_EQ(rank[0].Bytes(1ull << 40), rank[0].Bytes(88));
}

}  // namespace
}  // namespace tandem::kv
