// Draft heads against stored logits: fed with a prompt and the model's own states, at once and in
// chunks, and then with its own guesses; on every kernel set and the emulated CUDA backend, with
// ranks as threads.
#include "worker/model/draft_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/factory.h"
#include "tests/cluster/golden_cases.h"
#include "tests/common/config/named.h"
#include "tests/contract/run_ranks.h"
#include "tests/worker/comm/local_communicator.h"
#include "tests/worker/model/draft_rank.h"
#include "tests/worker/runtime/runner_rig.h"
#include "tools/cuda_emulation/emulated_backend.h"

namespace tandem::worker {
namespace {

using testing::GoldenCase;

constexpr double kMaxAbsDiff = 1e-3;

// Model, kernels, ranks, whether ranks have whole experts.
using Parameters = std::tuple<std::string, std::string, int, bool>;

LoadOptions OptionsOf(const Parameters& parameters, int rank) {
  const auto& [name, kernels, size, whole_experts] = parameters;
  LoadOptions load{.config = {.model = {.path = testing::ReadArchGolden(name).path}}};
  load.config.model.spec = {.max_model_len = kMaxLength, .load_draft_head = true};
  load.config.model.expert_parallel = whole_experts;
  load.config.device.threads = 1;
  if (kernels == "cuda") {
    load.config.device.device = config::Device::kCuda;
  } else {
    load.config.device.cpu_kernels = testing::Named<config::CpuKernels>(kernels);
  }
  load.assignment.rank = rank;
  load.assignment.size = size;
  return load;
}

class DraftHeadTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [name, kernels, size, whole_experts] = GetParam();
    kernels::RegisterCuda([](int) { return kernels::cuda::MakeEmulatedBackend(); });
    if (!kernels::MakeBackend(OptionsOf(GetParam(), 0).config.device).ok()) {
      GTEST_SKIP() << "this machine has no " << kernels;
    }
    golden_ = testing::ReadArchGolden(name);
    std::vector<kernels::HostStream*> streams;
    for (int rank = 0; rank < size; ++rank) {
      auto loaded = DraftRank::Load(OptionsOf(GetParam(), rank));
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      ranks_.push_back(*std::move(loaded));
      streams.push_back(ranks_.back()->backend().host_stream());
    }
    if (size == 1) return;
    auto communicators = MakeLocalCommunicators(streams);
    for (int rank = 0; rank < size; ++rank) ranks_[rank]->Join(std::move(communicators[rank]));
  }

  // For docs/fidelity.md.
  void TearDown() override {
    if (largest_diff_ < 0) return;
    const auto& [name, kernels, size, whole_experts] = GetParam();
    std::printf("largest difference: %s draft head %s TP %d %s: %.1e\n", name.c_str(),
                kernels.c_str(), size, whole_experts ? "whole experts" : "", largest_diff_);
  }

  // What rank 0 returns of a step of all ranks.
  template <typename Step>
  Rows OnAllRanks(const Step& step) {
    Rows first;
    RunRanks(static_cast<int>(ranks_.size()), [&](int rank) {
      absl::StatusOr<Rows> rows = step(*ranks_[rank]);
      EXPECT_TRUE(rows.ok()) << rows.status();
      if (rank == 0 && rows.ok()) first = *std::move(rows);
    });
    return first;
  }

  // The prompt in chunks. Logits of the model, then of the head, by position.
  std::pair<Rows, Rows> Prefill(const GoldenCase& one, uint32_t chunk, uint32_t slot = 0) {
    std::pair<Rows, Rows> logits;
    const auto total = static_cast<uint32_t>(one.tokens.size());
    for (uint32_t begin = 0; begin < total; begin += chunk) {
      const uint32_t end = std::min(begin + chunk, total);
      std::vector<uint32_t> rows;
      for (const int position : one.positions) {
        const auto at = static_cast<uint32_t>(position);
        if (at >= begin && at < end) rows.push_back(at - begin);
      }
      const Piece piece =
          PieceOf({one.tokens.begin() + begin, one.tokens.begin() + end}, begin, slot);
      const Rows both = OnAllRanks([&](DraftRank& rank) { return rank.Prefill(piece, rows); });
      EXPECT_EQ(both.size(), 2 * rows.size());
      const auto middle = both.begin() + static_cast<ptrdiff_t>(both.size() / 2);
      logits.first.insert(logits.first.end(), both.begin(), middle);
      logits.second.insert(logits.second.end(), middle, both.end());
    }
    return logits;
  }

  // Tokens from position `begin` on, in blocks of the slot's own.
  static Piece PieceOf(std::vector<TokenId> tokens, uint32_t begin, uint32_t slot = 0) {
    return {.slot = slot,
            .first_block = static_cast<int32_t>(20 * slot),
            .begin = begin,
            .tokens = std::move(tokens),
            .blocks_sent = (begin + 7) / 8};
  }

  Rows Guess(const std::vector<Piece>& pieces) {
    return OnAllRanks([&](DraftRank& rank) { return rank.Guess(pieces); });
  }

  void Compare(const Rows& found, const Rows& stored, const GoldenCase& one, const char* what) {
    ASSERT_EQ(found.size(), stored.size()) << what;
    for (size_t row = 0; row < found.size(); ++row) {
      ASSERT_EQ(found[row].size(), stored[row].size());
      double most = 0;
      for (size_t i = 0; i < found[row].size(); ++i) {
        const double diff = std::fabs(double{found[row][i]} - double{stored[row][i]});
        if (!(diff <= most)) most = diff;  // a NaN counts
      }
      largest_diff_ = std::max(largest_diff_, most);
      EXPECT_LE(most, kMaxAbsDiff)
          << what << ", row " << row << ", prompt of " << one.tokens.size() << " tokens";
    }
  }

  testing::GoldenModel golden_;
  std::vector<std::unique_ptr<DraftRank>> ranks_;
  double largest_diff_ = -1;
};

TEST_P(DraftHeadTest, LogitsAndGuesses) {
  for (const GoldenCase& one : golden_.cases) {
    ASSERT_TRUE(one.draft.has_value());
    // Longer ones only take time under emulation.
    if (std::get<1>(GetParam()) == "cuda" && one.tokens.size() > 33) continue;
    const auto [logits, draft_logits] = Prefill(one, kMaxTokens);
    Compare(logits, one.logits, one, "the model");
    Compare(draft_logits, one.draft->logits, one, "its draft head");
    // From the first greedy token on, each with the state of the guess before.
    auto at = static_cast<uint32_t>(one.tokens.size());
    TokenId token = one.greedy.front();
    Rows guesses;
    for (const TokenId expected : one.draft->guesses) {
      guesses.push_back(Guess({PieceOf({token}, at++)}).at(0));
      const auto best = std::max_element(guesses.back().begin(), guesses.back().end());
      EXPECT_EQ(best - guesses.back().begin(), expected);
      token = expected;
    }
    Compare(guesses, one.draft->guess_logits, one, "its guesses");
  }
}

// As everywhere on the CPU, a row's bits depend neither on the chunks nor on other sequences.
class DraftHeadBitsTest : public DraftHeadTest {};

TEST_P(DraftHeadBitsTest, OfAnyChunks) {
  const GoldenCase& one = golden_.cases[2];
  const auto whole = Prefill(one, kMaxTokens);
  EXPECT_EQ(Prefill(one, 5), whole);
  EXPECT_EQ(Prefill(one, 1), whole);
}

TEST_P(DraftHeadBitsTest, AloneAndTogether) {
  using Batches = std::vector<std::vector<Piece>>;
  const auto guesses = [&](bool together) {
    Rows rows;
    std::vector<Piece> next;
    for (uint32_t slot = 0; slot < kMaxSeqs; ++slot) {
      const GoldenCase& one = golden_.cases[1 + slot];
      Prefill(one, kMaxTokens, slot);
      next.push_back(PieceOf({one.greedy.front()}, static_cast<uint32_t>(one.tokens.size()), slot));
    }
    for (size_t i = 0; i < 3; ++i) {
      const Batches batches = together ? Batches{next} : Batches{{next[0]}, {next[1]}};
      for (const auto& pieces : batches) {
        for (auto& row : Guess(pieces)) rows.push_back(std::move(row));
      }
      for (uint32_t slot = 0; slot < kMaxSeqs; ++slot) {
        next[slot] =
            PieceOf({golden_.cases[1 + slot].draft->guesses[i]}, next[slot].begin + 1, slot);
      }
    }
    return rows;
  };
  const Rows alone = guesses(false);
  EXPECT_EQ(alone.size(), 6u);
  EXPECT_EQ(guesses(true), alone);
}

// Loaded or only described, the plan is the same; without the head nothing of it is in the plan.
TEST(DraftHeadPlanTest, MemoryIsCountedIfItIsLoaded) {
  const auto plan = [](bool with_head) {
    LoadOptions load = OptionsOf({"glm4moe-mtp", "reference", 2, false}, 1);
    load.config.model.spec.load_draft_head = with_head;
    const auto described = DescribeModel(load);
    EXPECT_TRUE(described.ok()) << described.status();
    const auto early = MakePlan(**described, DraftRank::Options(load));
    EXPECT_TRUE(early.ok()) << early.status();
    const auto model = LoadModel(load);
    EXPECT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->draft_head() != nullptr, with_head);
    const auto late = MakePlan(**model, DraftRank::Options(load));
    EXPECT_TRUE(late.ok()) << late.status();
    EXPECT_EQ(late->weights_bytes, early->weights_bytes);
    EXPECT_EQ(late->activation_bytes, early->activation_bytes);
    return *late;
  };
  const RunnerPlan without = plan(false);
  const RunnerPlan with = plan(true);
  EXPECT_GT(with.weights_bytes, without.weights_bytes);
  EXPECT_GT(with.buffers_bytes, without.buffers_bytes);
  ASSERT_EQ(with.kv.groups.size(), 1u);
  // One more layer than the model's two.
  EXPECT_EQ(with.kv.groups[0].bytes_per_block * 2, without.kv.groups[0].bytes_per_block * 3);
}

std::vector<Parameters> AllParameters() {
  const std::vector<std::pair<std::string, std::vector<int>>> models = {
      {"qwen35-mtp", {1, 2}}, {"qwen35moe-mtp", {1, 2}}, {"glm4moe-mtp", {1, 2, 4}}};
  std::vector<Parameters> all;
  for (const auto& [name, sizes] : models) {
    for (const char* kernels : {"reference", "avx2", "avx512"}) {
      for (const int size : sizes) all.emplace_back(name, kernels, size, false);
    }
  }
  all.emplace_back("qwen35moe-mtp", "avx2", 2, true);
  all.emplace_back("glm4moe-mtp", "avx2", 4, true);
  return all;
}

std::string TestName(const ::testing::TestParamInfo<Parameters>& info) {
  const auto& [name, kernels, size, whole_experts] = info.param;
  std::string text =
      name + "_" + kernels + "_tp" + std::to_string(size) + (whole_experts ? "_whole_experts" : "");
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Models, DraftHeadTest, ::testing::ValuesIn(AllParameters()), TestName);
INSTANTIATE_TEST_SUITE_P(Models, DraftHeadBitsTest, ::testing::ValuesIn(AllParameters()), TestName);
INSTANTIATE_TEST_SUITE_P(Cuda, DraftHeadTest,
                         ::testing::Values(Parameters("qwen35-mtp", "cuda", 1, false),
                                           Parameters("qwen35moe-mtp", "cuda", 1, false),
                                           Parameters("glm4moe-mtp", "cuda", 1, false)),
                         TestName);

}  // namespace
}  // namespace tandem::worker
