// The parallel layers on N ranks of one process give what one rank gives: sharded weights, one
// backend per rank, a local communicator.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "kernels/factory.h"
#include "tests/worker/comm/local_communicator.h"
#include "worker/layers/linear.h"
#include "worker/layers/vocabulary.h"

namespace tandem::worker {
namespace {

constexpr uint32_t kTokens = 5;
constexpr uint32_t kHidden = 24;
constexpr uint32_t kWide = 37;  // split unevenly

std::vector<float> Random(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return uniform(random); });
  return values;
}

// Rows, or columns, [begin, end) of a dense matrix.
kernels::Weight Rows(const std::vector<float>& matrix, uint32_t cols, uint32_t begin,
                     uint32_t end) {
  return {tensor::Type::kF32, matrix.data() + begin * cols, end - begin, cols, cols * 4, 0, cols};
}
kernels::Weight Cols(const std::vector<float>& matrix, uint32_t rows, uint32_t cols, uint32_t begin,
                     uint32_t end) {
  return {tensor::Type::kF32, matrix.data() + begin, rows, end - begin, cols * 4, 0, end - begin};
}

// One rank: runs `encode` on its own stream and waits.
class Rank {
 public:
  Rank(int rank, int size, kernels::Backend& backend, Communicator& comm)
      : rank_(rank), size_(size), backend_(backend), comm_(comm) {}

  template <typename Encode>
  void Run(const Encode& encode) {
    Arena counting(tensor::Type::kF32);
    LayerContext plan{.backend = backend_, .comm = nullptr, .arena = counting};
    backend_.BeginEncode(kernels::EncodeMode::kPlan);
    encode(plan);
    ASSERT_TRUE(backend_.FinishPlan().ok());
    auto memory = backend_.Allocate(counting.peak() + 1);
    ASSERT_TRUE(memory.ok());
    Arena arena(tensor::Type::kF32, memory->data(), memory->bytes());
    LayerContext context{.backend = backend_, .comm = &comm_, .arena = arena};
    backend_.BeginEncode(kernels::EncodeMode::kRun);
    encode(context);
    ASSERT_TRUE(backend_.SubmitAndWait(Deadline::After(std::chrono::seconds(30))).ok());
  }
  int rank() const { return rank_; }
  // This rank's part of `total`, uneven where it must be.
  uint32_t Begin(uint32_t total) const { return Cut(total, rank_); }
  uint32_t End(uint32_t total) const { return Cut(total, rank_ + 1); }

 private:
  uint32_t Cut(uint32_t total, int rank) const {
    return total * static_cast<uint32_t>(rank) / static_cast<uint32_t>(size_);
  }

  const int rank_;
  const int size_;
  kernels::Backend& backend_;
  Communicator& comm_;
};

// Runs `body(rank)` for all ranks at once, each on its own thread.
template <typename Body>
void OnAllRanks(int size, const Body& body) {
  std::vector<std::unique_ptr<kernels::Backend>> backends;
  std::vector<kernels::HostStream*> streams;
  for (int rank = 0; rank < size; ++rank) {
    backends.push_back(
        *kernels::MakeBackend({.cpu_kernels = config::CpuKernels::kReference, .threads = 1}));
    streams.push_back(backends.back()->host_stream());
  }
  const auto communicators = MakeLocalCommunicators(streams);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < backends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Rank self(static_cast<int>(rank), size, *backends[rank], *communicators[rank]);
      body(self);
    });
  }
  for (auto& thread : threads) thread.join();
}

class ParallelLayersTest : public ::testing::TestWithParam<int> {};

TEST_P(ParallelLayersTest, AnMlpIsWhole) {
  const auto x = Random(1, kTokens * kHidden);
  const auto up = Random(2, kWide * kHidden);
  const auto down = Random(3, kHidden * kWide);
  const auto bias = Random(4, kHidden);
  auto run = [&](Rank& rank, std::vector<float>& out) {
    const uint32_t begin = rank.Begin(kWide), end = rank.End(kWide);
    const ColumnParallelLinear column({Rows(up, kHidden, begin, end), nullptr});
    const RowParallelLinear row({Cols(down, kHidden, kWide, begin, end), bias.data()});
    std::vector<float> middle(kTokens * (end - begin));
    out.resize(kTokens * kHidden);
    rank.Run([&](LayerContext& context) {
      column.Encode(context, x.data(), kTokens, middle.data());
      row.Encode(context, middle.data(), kTokens, out.data());
    });
  };
  std::vector<float> whole;
  OnAllRanks(1, [&](Rank& rank) { run(rank, whole); });
  std::vector<std::vector<float>> parts(static_cast<size_t>(GetParam()));
  OnAllRanks(GetParam(), [&](Rank& rank) { run(rank, parts[static_cast<size_t>(rank.rank())]); });
  for (const auto& part : parts) {
    ASSERT_EQ(part.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(part[i], whole[i], 1e-4);
    EXPECT_EQ(part, parts[0]) << "ranks differ in bits";
  }
}

TEST_P(ParallelLayersTest, EmbeddingAndHeadCoverTheVocabulary) {
  const auto table = Random(5, kWide * kHidden);
  const std::vector<int32_t> ids = {0, 36, 18, 19, 7};
  std::vector<float> embedded(kTokens * kHidden);
  std::vector<float> logits(kTokens * kWide);
  OnAllRanks(GetParam(), [&](Rank& rank) {
    std::vector<uint32_t> starts;
    const auto ranks = static_cast<uint32_t>(GetParam());
    for (uint32_t r = 0; r <= ranks; ++r) starts.push_back(kWide * r / ranks);
    const kernels::Weight slice = Rows(table, kHidden, rank.Begin(kWide), rank.End(kWide));
    const VocabParallelEmbedding embedding(slice, rank.Begin(kWide), 1.0f);
    const VocabParallelHead head(slice, starts);
    std::vector<float> hidden(kTokens * kHidden);
    rank.Run([&](LayerContext& context) {
      embedding.Encode(context, ids.data(), kTokens, hidden.data());
      const float* found =
          head.Encode(context, {.norm = {}, .x = hidden.data()}, kTokens, rank.rank());
      if (context.comm == nullptr) return;  // the plan pass has no pointers
      EXPECT_EQ(found != nullptr, rank.rank() == 0);
      if (found != nullptr) {
        context.backend.Download(logits.data(), found, logits.size() * sizeof(float));
      }
    });
    if (rank.rank() == 0) embedded = hidden;
  });
  for (uint32_t t = 0; t < kTokens; ++t) {
    const float* row = table.data() + static_cast<size_t>(ids[t]) * kHidden;
    EXPECT_TRUE(std::equal(row, row + kHidden, embedded.data() + t * kHidden)) << "token " << t;
    for (uint32_t v = 0; v < kWide; ++v) {
      float expected = 0;
      for (uint32_t i = 0; i < kHidden; ++i) expected += row[i] * table[v * kHidden + i];
      ASSERT_NEAR(logits[t * kWide + v], expected, 1e-4) << "token " << t << ", id " << v;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ParallelLayersTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace tandem::worker
