#include "coordinator/startup/kv_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/adapter.h"
#include "common/model/build_spec.h"
#include "common/model/human_bytes.h"
#include "common/model/shard.h"

namespace tandem::coordinator {
namespace {

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
    config_.model.spec.max_model_len = 1000;
    config_.cache.block_size = 10;
    config_.limits.max_num_seqs = 3;
  }
  // A token takes layers x kv heads x (K and V of 16) x 2 bytes.
  static constexpr uint64_t kTokenBytes = 2 * 2 * 32 * 2;

  absl::StatusOr<std::vector<uint64_t>> BytesPerRank(uint64_t available_bytes) const {
    return KvBytesPerRank(
        config_, size_,
        {.spec = spec_, .draft = draft_, .bytes = model_bytes_, .adapters = adapters_},
        available_bytes);
  }

  model::ModelSpec spec_;
  const model::ModelSpec* draft_ = nullptr;
  config::WorkerConfig config_;
  int size_ = 1;
  uint64_t model_bytes_ = 0;
  std::vector<const model::Adapter*> adapters_;
};

TEST_F(KvBytesTest, DefaultIsWhatAllSequencesNeedAndNeverMoreThanIsFree) {
  const auto needed = BytesPerRank(1ull << 40);
  ASSERT_TRUE(needed.ok()) << needed.status();
  EXPECT_EQ(*needed, std::vector<uint64_t>{3 * 1000 * kTokenBytes});
  const auto free = BytesPerRank(55 * kTokenBytes);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_EQ(*free, std::vector<uint64_t>{50 * kTokenBytes});  // whole blocks
}

TEST_F(KvBytesTest, CopiedWeightsComeFirst) {
  model_bytes_ = 5 * kTokenBytes;
  const auto free = BytesPerRank(55 * kTokenBytes);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_EQ(*free, std::vector<uint64_t>{50 * kTokenBytes});
  EXPECT_EQ(BytesPerRank(54 * kTokenBytes)->front(), 40 * kTokenBytes);
  model_bytes_ = 3ull << 20;
  EXPECT_EQ(BytesPerRank(2ull << 20).status().message(),
            "the weights need 3 MiB of memory over all ranks, only 2 MiB are free: "
            "--no-repack-weights computes on the mapped file");
  config_.device.repack_weights = false;
  EXPECT_TRUE(BytesPerRank(2ull << 20).ok());
  config_.device.repack_weights = true;
  config_.device.cpu_kernels = config::CpuKernels::kReference;
  EXPECT_TRUE(BytesPerRank(2ull << 20).ok());
}

TEST_F(KvBytesTest, AdaptersComeFirst) {
  const auto file = gguf::File::Open("tests/golden/arch/llama/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  spec_ = model::BuildSpec(*file, {}).value();
  const auto adapter = model::OpenAdapter("tests/golden/lora/llama/adapter.gguf", spec_);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  size_ = 2;
  uint64_t of_adapter = 0;
  for (int rank = 0; rank < 2; ++rank) {
    of_adapter +=
        model::AdapterBytes(*adapter, spec_, model::MakeShardPlan(spec_, rank, 2).value());
  }
  const auto alone = BytesPerRank(1 << 20);
  ASSERT_TRUE(alone.ok()) << alone.status();
  adapters_ = {&*adapter, &*adapter};
  EXPECT_EQ(BytesPerRank((1 << 20) + 2 * of_adapter), alone);
  EXPECT_NE(BytesPerRank(1 << 20), alone);
  config_.device.repack_weights = false;
  EXPECT_EQ(BytesPerRank((1 << 20) + 2 * of_adapter), alone);
  const auto refused = BytesPerRank(of_adapter);
  EXPECT_EQ(std::string(refused.status().message()),
            absl::StrCat("the adapters of --lora-modules need ", model::HumanBytes(2 * of_adapter),
                         " of memory over all ranks, beside the weights only ",
                         model::HumanBytes(of_adapter), " are free"));
}

TEST_F(KvBytesTest, ADraftModelIsAPartOfEachBlock) {
  model::ModelSpec draft = spec_;
  draft.num_layers = 1;
  draft.kv_groups = {{.window_tokens = 0, .layers = {0}}};
  draft_ = &draft;
  EXPECT_EQ(*BytesPerRank(1ull << 40),
            std::vector<uint64_t>{3 * 1000 * (kTokenBytes + kTokenBytes / 2)});
  draft.num_heads = draft.num_kv_heads = 1;
  size_ = 2;
  const absl::Status status = BytesPerRank(1ull << 40).status();
  EXPECT_EQ(status.message().find("the draft model: "), 0u) << status;
}

TEST_F(KvBytesTest, RanksShareTheAmountBlockByBlock) {
  size_ = 4;  // each KV head is replicated on two ranks
  config_.cache.kv_cache_memory = {1 << 20};
  const auto bytes = BytesPerRank(1ull << 40);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_EQ(bytes->size(), 4u);
  const uint64_t block = 10 * kTokenBytes / 2;  // one of two KV heads
  for (uint64_t rank : *bytes) EXPECT_EQ(rank, (1 << 20) / (4 * block) * block);
}

// One of the two layers keeps a state: (4 - 1) x 32 inputs of the convolution and a matrix of 8 x 8
// for each of two heads, in F32.
TEST_F(KvBytesTest, RecurrentStatesComeFirst) {
  spec_.kv_groups = {{.window_tokens = 0, .layers = {0}}};
  spec_.delta_net = {
      .key_heads = 1, .value_heads = 2, .head_dim = 8, .conv_taps = 4, .layers = {1}};
  constexpr uint64_t kState = (3 * 32 + 2 * 64) * 4;
  constexpr uint64_t kBlock = 10 * kTokenBytes / 2;
  const auto bytes = BytesPerRank(3 * kState + 7 * kBlock);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, std::vector<uint64_t>{7 * kBlock});
  const auto too_few = BytesPerRank(3 * kState - 1);
  EXPECT_EQ(too_few.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(too_few.status().message(),
            "the recurrent states of 3 sequences need 2.62 KiB over all ranks (896 B each), only "
            "2.62 KiB of memory are free: lower --max-num-seqs to at most 2");
}

// A window of 32 tokens in one of the two layers: 3 sequences span 6 blocks of 10 each, one step's
// 512 tokens 52 more; as much again for hits.
TEST_F(KvBytesTest, AWindowTakesOnlyWhatItNeeds) {
  spec_.kv_groups = {{.window_tokens = 0, .layers = {0}}, {.window_tokens = 32, .layers = {1}}};
  config_.limits.max_num_batched_tokens = 512;
  constexpr uint64_t kWindowBlocks = 2 * (3 * 6 + 52);
  constexpr uint64_t kBlock = 10 * kTokenBytes / 2;  // of one layer
  const auto all = BytesPerRank(1ull << 40);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, std::vector<uint64_t>{(300 + kWindowBlocks) * kBlock});
  config_.cache.num_kv_blocks = 2000;
  EXPECT_EQ(*BytesPerRank(1ull << 40), std::vector<uint64_t>{(2000 + kWindowBlocks) * kBlock});
  // What the window leaves goes to full attention, whole blocks.
  config_.cache.num_kv_blocks = 0;
  config_.cache.kv_cache_memory = {1 << 20};
  const uint64_t blocks = (1 << 20) / kBlock;
  EXPECT_EQ(*BytesPerRank(1ull << 40), std::vector<uint64_t>{blocks * kBlock});
  EXPECT_GT(blocks - kWindowBlocks, kWindowBlocks);
}

TEST_F(KvBytesTest, RefusesWithNumbers) {
  config_.cache.num_kv_blocks = 1000;
  const auto status = BytesPerRank(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("2560000"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("1000 bytes"), absl::string_view::npos) << status;
}

TEST_F(KvBytesTest, TheCacheTypeCountsAndMustFitTheModel) {
  config_.cache.num_kv_blocks = 7;
  config_.cache.kv_cache_type = tensor::Type::kBF16;
  EXPECT_EQ(BytesPerRank(1ull << 40)->front(), 7 * 10 * kTokenBytes);
  config_.cache.kv_cache_type = tensor::Type::kQ8_0;
  const auto refused = BytesPerRank(1ull << 40).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("multiples of 32, the model's are 16 and 16"),
            absl::string_view::npos)
      << refused;
  spec_.head_dim = spec_.value_dim = 32;
  // Per layer and KV head one block of 34 bytes for K and one for V.
  EXPECT_EQ(BytesPerRank(1ull << 40)->front(), 7u * 10 * 4 * 2 * 34);
}

// Free host memory is unrelated to the device's.
TEST_F(KvBytesTest, ADevicesShareIsTheWorkersToCompute) {
  config_.device.device = config::Device::kCuda;
  size_ = 2;
  EXPECT_EQ(*BytesPerRank(0), (std::vector<uint64_t>{0, 0}));
  config_.cache.num_kv_blocks = 7;
  EXPECT_EQ(*BytesPerRank(0), std::vector<uint64_t>(2, 7 * 10 * kTokenBytes / 2));
  config_.cache.num_kv_blocks = 0;
  config_.cache.kv_cache_memory = {1 << 20};
  EXPECT_GT(BytesPerRank(0)->front(), 0u);
  size_ = 3;
  EXPECT_FALSE(BytesPerRank(0).ok());
}

}  // namespace
}  // namespace tandem::coordinator
