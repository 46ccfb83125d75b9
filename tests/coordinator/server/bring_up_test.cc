#include "coordinator/server/bring_up.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/server/options.h"

namespace tandem::coordinator {
namespace {

TEST(ParseBytesTest, UnitsAndNonsense) {
  EXPECT_EQ(*ParseBytes("1000"), 1000u);
  EXPECT_EQ(*ParseBytes("3KiB"), 3u << 10);
  EXPECT_EQ(*ParseBytes("512MiB"), 512u << 20);
  EXPECT_EQ(*ParseBytes("2GiB"), 2ull << 30);
  for (const char* bad :
       {"", "0", "-1", "GiB", "1.5GiB", "2 TiB", "99999999999999999999", "99999999999GiB"}) {
    EXPECT_EQ(ParseBytes(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

class KvBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec_.num_layers = 2;
    spec_.hidden_size = 64;
    spec_.num_heads = 4;
    spec_.num_kv_heads = 2;
    spec_.head_dim = spec_.value_dim = 16;
    spec_.ffn_size = 128;
    spec_.vocab_size = 100;
    spec_.context_length = 1000;
    spec_.kv_groups = {{.window_tokens = 0, .layers = {0, 1}}};
    options_.block_size = 10;
    options_.max_num_seqs = 3;
  }
  // A token takes layers x kv heads x (K and V of 16) x 2 bytes.
  static constexpr uint64_t kTokenBytes = 2 * 2 * 32 * 2;

  model::ModelSpec spec_;
  WorkerOptions options_;
};

TEST_F(KvBytesTest, DefaultIsWhatAllSequencesNeedAndNeverMoreThanIsFree) {
  const auto needed = KvBytesPerRank(options_, spec_, 1000, 1ull << 40);
  ASSERT_TRUE(needed.ok()) << needed.status();
  EXPECT_EQ(*needed, std::vector<uint64_t>{3 * 1000 * kTokenBytes});
  const auto free = KvBytesPerRank(options_, spec_, 1000, 55 * kTokenBytes);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_EQ(*free, std::vector<uint64_t>{50 * kTokenBytes});  // whole blocks
}

TEST_F(KvBytesTest, RanksShareTheAmountBlockByBlock) {
  options_.tensor_parallel_size = 4;  // each KV head stands on two ranks
  options_.kv_cache_memory = "1MiB";
  const auto bytes = KvBytesPerRank(options_, spec_, 1000, 1ull << 40);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_EQ(bytes->size(), 4u);
  const uint64_t block = 10 * kTokenBytes / 2;  // one of two KV heads
  for (uint64_t rank : *bytes) EXPECT_EQ(rank, (1 << 20) / (4 * block) * block);
}

// A window of 32 tokens in one of the two layers: 3 sequences span 6 blocks of 10 each, one step's
// 512 tokens 52 more; as much again for hits.
TEST_F(KvBytesTest, AWindowTakesOnlyWhatItNeeds) {
  spec_.kv_groups = {{.window_tokens = 0, .layers = {0}}, {.window_tokens = 32, .layers = {1}}};
  options_.max_num_batched_tokens = 512;
  constexpr uint64_t kWindowBlocks = 2 * (3 * 6 + 52);
  constexpr uint64_t kBlock = 10 * kTokenBytes / 2;  // of one layer
  const auto all = KvBytesPerRank(options_, spec_, 1000, 1ull << 40);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, std::vector<uint64_t>{(300 + kWindowBlocks) * kBlock});
  options_.num_kv_blocks = 2000;
  EXPECT_EQ(*KvBytesPerRank(options_, spec_, 1000, 1ull << 40),
            std::vector<uint64_t>{(2000 + kWindowBlocks) * kBlock});
  // What the window leaves goes to full attention, whole blocks.
  options_.num_kv_blocks = 0;
  options_.kv_cache_memory = "1MiB";
  const uint64_t blocks = (1 << 20) / kBlock;
  EXPECT_EQ(*KvBytesPerRank(options_, spec_, 1000, 1ull << 40),
            std::vector<uint64_t>{blocks * kBlock});
  EXPECT_GT(blocks - kWindowBlocks, kWindowBlocks);
}

TEST_F(KvBytesTest, RefusesWithNumbers) {
  options_.num_kv_blocks = 1000;
  const auto status = KvBytesPerRank(options_, spec_, 1000, 1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("2560000"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("1000 bytes"), absl::string_view::npos) << status;
}

TEST_F(KvBytesTest, TheCacheTypeCountsAndMustFitTheModel) {
  options_.num_kv_blocks = 7;
  options_.kv_cache_type = "bf16";
  EXPECT_EQ(KvBytesPerRank(options_, spec_, 1000, 1ull << 40)->front(), 7 * 10 * kTokenBytes);
  options_.kv_cache_type = "q8_0";
  const auto refused = KvBytesPerRank(options_, spec_, 1000, 1ull << 40).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("multiples of 32, the model's are 16 and 16"),
            absl::string_view::npos)
      << refused;
  spec_.head_dim = spec_.value_dim = 32;
  // Per layer and KV head one block of 34 bytes for K and one for V.
  EXPECT_EQ(KvBytesPerRank(options_, spec_, 1000, 1ull << 40)->front(), 7u * 10 * 4 * 2 * 34);
}

// What is free here says nothing about a device.
TEST_F(KvBytesTest, ADevicesShareIsTheWorkersToCompute) {
  options_.device = "cuda";
  options_.tensor_parallel_size = 2;
  EXPECT_EQ(*KvBytesPerRank(options_, spec_, 1000, 0), (std::vector<uint64_t>{0, 0}));
  options_.num_kv_blocks = 7;
  EXPECT_EQ(*KvBytesPerRank(options_, spec_, 1000, 0),
            std::vector<uint64_t>(2, 7 * 10 * kTokenBytes / 2));
  options_.num_kv_blocks = 0;
  options_.kv_cache_memory = "1MiB";
  EXPECT_GT(KvBytesPerRank(options_, spec_, 1000, 0)->front(), 0u);
  options_.tensor_parallel_size = 3;
  EXPECT_FALSE(KvBytesPerRank(options_, spec_, 1000, 0).ok());
}

TEST(LocalRanksTest, RanksOfAHostTakeDevicesInOrder) {
  EXPECT_EQ(LocalRanks({"a", "a", "a"}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(LocalRanks({"a", "b", "a", "b", "c"}), (std::vector<int>{0, 0, 1, 1, 0}));
}

TEST(WorkerOptionsTest, RefusesByFlagName) {
  const auto refused = [](auto change) {
    WorkerOptions options;
    change(options);
    return std::string(Validate(options).message());
  };
  EXPECT_TRUE(Validate(WorkerOptions()).ok());
  EXPECT_NE(refused([](auto& o) { o.device = "tpu"; }).find("one of cpu, cuda"), std::string::npos);
  EXPECT_NE(refused([](auto& o) {
              o.gpu_memory_utilization = 1.5;
            }).find("--gpu-memory-utilization is 1.5"),
            std::string::npos);
  EXPECT_NE(refused([](auto& o) {
              o.kv_cache_type = "q3";
            }).find("--kv-cache-type is 'q3', it must be one of f32, f16, bf16, q8_0"),
            std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.step_transport = "udp"; }).find("shm, grpc"),
            std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.max_num_seqs = 1000; }).find("--max-num-seqs 1000"),
            std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.block_size = 0; }).find("--block-size is 0"),
            std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.workers = "external"; }).find("--worker-token-file"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem::coordinator
