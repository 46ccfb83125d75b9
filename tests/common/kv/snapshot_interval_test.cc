#include "common/kv/snapshot_interval.h"

#include <gtest/gtest.h>

#include "common/kv/snapshots.h"

namespace tandem::kv {
namespace {

// One layer of attention: 4 KiB per token in F16. One recurrent layer: a matrix of 32 KiB and 3
// rows of 256 channels, 35 KiB.
model::ModelSpec Hybrid() {
  model::ModelSpec spec;
  spec.num_layers = 2;
  spec.num_heads = spec.num_kv_heads = 8;
  spec.head_dim = spec.value_dim = 128;
  spec.ffn_size = spec.vocab_size = 64;
  spec.context_length = 4096;
  spec.kv_groups = {{0, {1}}};
  spec.delta_net = {
      .key_heads = 2, .value_heads = 2, .head_dim = 64, .conv_taps = 4, .layers = {0}};
  return spec;
}

uint32_t Interval(const model::ModelSpec& spec, config::CacheConfig cache, bool caching = true) {
  const auto interval = SnapshotInterval(spec, cache, caching);
  EXPECT_TRUE(interval.ok()) << interval.status();
  return interval.value_or(0);
}

TEST(SnapshotIntervalTest, ByDefaultASnapshotTakesTheMemoryOfItsTokens) {
  model::ModelSpec spec = Hybrid();
  EXPECT_EQ(Interval(spec, {.block_size = 2}), 8u);  // 8.6 tokens' memory
  EXPECT_EQ(Interval(spec, {.block_size = 16}), 16u) << "at least a block";
  spec.delta_net->head_dim = 128;
  EXPECT_EQ(Interval(spec, {.block_size = 4}), 32u);
  spec.context_length = 20;
  EXPECT_EQ(Interval(spec, {.block_size = 4}), 20u) << "at most the context";
}

TEST(SnapshotIntervalTest, TheFlagIsTakenIfItIsAMultipleOfTheBlockSize) {
  EXPECT_EQ(Interval(Hybrid(), {.block_size = 16, .state_snapshot_interval = 48}), 48u);
  const auto odd =
      SnapshotInterval(Hybrid(), {.block_size = 16, .state_snapshot_interval = 40}, true);
  EXPECT_EQ(odd.status().message(),
            "--state-snapshot-interval 40 is no multiple of --block-size 16");
}

TEST(SnapshotIntervalTest, ATypeThatTheHeadsDoNotFitIsRefused) {
  model::ModelSpec spec = Hybrid();
  spec.head_dim = spec.value_dim = 48;
  const auto interval =
      SnapshotInterval(spec, {.block_size = 16, .kv_cache_type = tensor::Type::kQ8_0}, true);
  EXPECT_EQ(interval.status().code(), absl::StatusCode::kInvalidArgument) << interval.status();
}

TEST(SnapshotIntervalTest, NoneWithoutStatesOrPrefixCaching) {
  const config::CacheConfig cache = {.block_size = 16, .state_snapshot_interval = 48};
  EXPECT_EQ(Interval(Hybrid(), cache, /*caching=*/false), 0u);
  model::ModelSpec attention = Hybrid();
  attention.delta_net.reset();
  EXPECT_EQ(Interval(attention, cache), 0u);
}

TEST(SnapshotsTest, OnePerIntervalOfTheBlocksTokens) {
  EXPECT_EQ(NumSnapshots(10, 0, 16), 0u);
  EXPECT_EQ(NumSnapshots(0, 48, 16), 0u);
  EXPECT_EQ(NumSnapshots(1, 48, 16), 1u);
  EXPECT_EQ(NumSnapshots(9, 48, 16), 3u);
  EXPECT_EQ(NumSnapshots(10, 48, 16), 4u);
}

}  // namespace
}  // namespace tandem::kv
