// Draft heads against stored logits: fed with a prompt and the model's own states, at once and in
// chunks, and then with its own guesses; on every kernel set, with ranks as threads.
#include "worker/model/draft_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "kernels/factory.h"
#include "tests/cluster/golden_cases.h"
#include "tests/common/config/named.h"
#include "tests/contract/run_ranks.h"
#include "tests/worker/comm/local_communicator.h"
#include "tests/worker/runtime/runner_rig.h"
#include "worker/runtime/planner.h"

namespace tandem::worker {
namespace {

using testing::GoldenCase;
using Rows = std::vector<std::vector<float>>;

constexpr double kMaxAbsDiff = 1e-3;
constexpr uint32_t kMaxTokens = 130;  // of a prompt
constexpr uint32_t kMaxLength = kMaxTokens + 4;

RunnerOptions OptionsFor(const LoadOptions& load) {
  RunnerOptions options{.config = load.config};
  options.config.cache = {
      .block_size = 8, .num_kv_blocks = 32, .kv_cache_type = tensor::Type::kF32};
  options.config.limits.max_num_seqs = 2;
  options.config.limits.max_num_batched_tokens = kMaxTokens;
  options.config.transport.max_result_bytes = {1 << 20};
  return options;
}

// One rank of a model with its draft head, and the memory that a runner would give it: of
// activations exactly what the plan counts. One sequence.
class Rank {
 public:
  static absl::StatusOr<std::unique_ptr<Rank>> Load(const LoadOptions& load) {
    std::unique_ptr<Rank> rank(new Rank);
    TANDEM_ASSIGN_OR_RETURN(rank->model_, LoadModel(load));
    const RunnerOptions options = OptionsFor(load);
    TANDEM_ASSIGN_OR_RETURN(const RunnerPlan plan, MakePlan(*rank->model_, options));
    const model::ModelSpec& spec = rank->model_->spec();
    const std::vector<uint32_t> num_blocks = plan.kv.NumBlocks(plan.num_kv_blocks);
    const step::StepLimits limits = LimitsFor(spec, options, num_blocks);
    kernels::Backend& backend = rank->backend();
    TANDEM_ASSIGN_OR_RETURN(rank->activations_, backend.Allocate(plan.activation_bytes));
    TANDEM_ASSIGN_OR_RETURN(
        rank->kv_, KvCache::Create(spec, rank->model_->plan(), options, num_blocks, backend));
    TANDEM_ASSIGN_OR_RETURN(rank->recurrent_, RecurrentStates::Create(spec, rank->model_->plan(),
                                                                      limits.max_seqs, backend));
    TANDEM_ASSIGN_OR_RETURN(rank->tables_, DeviceTables::Create(limits, backend));
    TANDEM_ASSIGN_OR_RETURN(StepBuffers buffers, StepBuffers::Create(limits, backend));
    rank->buffers_.emplace(std::move(buffers));
    rank->zeros_.resize(spec.hidden_size);
    TANDEM_ASSIGN_OR_RETURN(rank->states_,
                            backend.Allocate((kMaxTokens + 1) * spec.hidden_size * sizeof(float)));
    return rank;
  }

  kernels::Backend& backend() { return model_->backend(); }
  void Join(std::unique_ptr<Communicator> comm) { comm_ = std::move(comm); }

  // Logits of the model, then of its draft head, for the requested tokens of the next chunk of a
  // prompt: 2 * rows on rank 0, none on other ranks.
  absl::StatusOr<Rows> Prefill(const Piece& piece, const std::vector<uint32_t>& rows) {
    return Run(piece, rows, [&](LayerContext& context, const StepBuffers::Staged& staged) {
      if (piece.begin == 0) Upload(zeros_.data(), states());
      Hidden hidden =
          model_->decoder().Encode(context, staged.batch, kv_.pages(), recurrent_.layers());
      Copy(model_->decoder().output().EncodeStates(context, staged.batch.tokens, hidden),
           staged.batch.tokens, states() + zeros_.size());
      EncodeLogits(context, model_->decoder().output(), hidden, staged.head);
      hidden = EncodeDraft(context, staged);
      Copy(states() + staged.batch.tokens * zeros_.size(), 1, states());
    });
  }

  // Logits of the draft head for one token, whose predecessor's state is the last one: the model's,
  // or the head's own of the guess before.
  absl::StatusOr<Rows> Guess(const Piece& piece) {
    return Run(piece, {0}, [&](LayerContext& context, const StepBuffers::Staged& staged) {
      Hidden hidden = EncodeDraft(context, staged);
      Copy(model_->draft_head()->output().EncodeStates(context, 1, hidden), 1, states());
    });
  }

 private:
  float* states() { return reinterpret_cast<float*>(states_.data()); }

  template <typename EncodeBody>
  absl::StatusOr<Rows> Run(const Piece& piece, const std::vector<uint32_t>& rows,
                           const EncodeBody& encode) {
    step::StepDescriptor step = MakeStep(1, {piece});
    step.rows.clear();
    step.sampling.clear();
    for (const uint32_t row : rows) {
      step.rows.push_back({.token = row, .wants = step::kWantLogits, .logprobs_of = {}});
    }
    const StepBuffers::Staged staged = buffers_->Stage(step, tables_);
    downloaded_ = 0;
    backend().BeginEncode(kernels::EncodeMode::kRun);
    buffers_->Upload(backend());
    backend().Encode(staged.table_update);
    Arena arena(model_->activation_type(), activations_.data(), activations_.bytes());
    LayerContext context{.backend = backend(), .comm = comm_.get(), .arena = arena};
    encode(context, staged);
    TANDEM_RETURN_IF_ERROR(backend().Submit(Soon()));
    TANDEM_RETURN_IF_ERROR(backend().Wait());
    const size_t vocab = model_->spec().vocab_size;
    Rows logits;
    for (size_t i = 0; i < downloaded_; ++i) {
      const float* const row = buffers_->host_logits() + i * vocab;
      logits.emplace_back(row, row + vocab);
    }
    return logits;
  }

  Hidden EncodeDraft(LayerContext& context, const StepBuffers::Staged& staged) {
    const Hidden hidden =
        model_->draft_head()->Encode(context, staged.batch, states(), kv_.pages());
    EncodeLogits(context, model_->draft_head()->output(), hidden, staged.head);
    return hidden;
  }

  void EncodeLogits(LayerContext& context, const OutputHead& output, const Hidden& hidden,
                    const HeadBatch& head) {
    const size_t mark = context.arena.used();
    for (const HeadSlice& slice : head.slices) {
      const float* const logits =
          output.EncodeLogits(context, hidden, slice.tokens, slice.num_rows);
      context.arena.Rewind(mark);
      if (logits == nullptr) continue;
      downloaded_ += slice.num_rows;
      buffers_->DownloadLogits(logits, slice.num_rows * size_t{model_->spec().vocab_size},
                               backend());
    }
  }

  void Copy(const float* from, uint32_t rows, float* to) {
    const auto dim = static_cast<uint32_t>(zeros_.size());
    backend().Encode(kernels::CopyRowsParams{
        .x = from, .x_stride = dim, .rows = rows, .dim = dim, .y = to, .y_stride = dim});
  }
  void Upload(const float* from, float* to) {
    backend().Upload(to, from, zeros_.size() * sizeof(float));
  }

  std::unique_ptr<LoadedModel> model_;
  kernels::Buffer activations_;
  KvCache kv_;
  RecurrentStates recurrent_;
  DeviceTables tables_;
  std::optional<StepBuffers> buffers_;
  std::unique_ptr<Communicator> comm_;
  std::vector<float> zeros_;  // a state
  // The state before a step's first token, then those of its tokens.
  kernels::Buffer states_;
  size_t downloaded_ = 0;  // rows of logits
};

// Model, kernels, ranks, whether ranks have whole experts.
using Parameters = std::tuple<std::string, std::string, int, bool>;

class DraftHeadTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    const auto& [name, kernels, size, whole_experts] = GetParam();
    config::DeviceConfig device{.cpu_kernels = testing::Named<config::CpuKernels>(kernels),
                                .threads = 1};
    if (!kernels::MakeBackend(device).ok()) GTEST_SKIP() << "this machine has no " << kernels;
    golden_ = testing::ReadArchGolden(name);
    std::vector<kernels::HostStream*> streams;
    for (int rank = 0; rank < size; ++rank) {
      LoadOptions load{.config = {.model = {.path = golden_.path}, .device = device}};
      load.config.model.spec = {.max_model_len = kMaxLength, .load_draft_head = true};
      load.config.model.expert_parallel = whole_experts;
      load.assignment.rank = rank;
      load.assignment.size = size;
      auto loaded = Rank::Load(load);
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

  // The prompt in chunks, from block 0 on. Logits of the model, then of the head, by position.
  std::pair<Rows, Rows> Prefill(const GoldenCase& one, uint32_t chunk) {
    std::pair<Rows, Rows> logits;
    const auto total = static_cast<uint32_t>(one.tokens.size());
    for (uint32_t begin = 0; begin < total; begin += chunk) {
      const uint32_t end = std::min(begin + chunk, total);
      std::vector<uint32_t> rows;
      for (const int position : one.positions) {
        const auto at = static_cast<uint32_t>(position);
        if (at >= begin && at < end) rows.push_back(at - begin);
      }
      const Piece piece = PieceOf({one.tokens.begin() + begin, one.tokens.begin() + end}, begin);
      const Rows both = OnAllRanks([&](Rank& rank) { return rank.Prefill(piece, rows); });
      EXPECT_EQ(both.size(), 2 * rows.size());
      const auto middle = both.begin() + static_cast<ptrdiff_t>(both.size() / 2);
      logits.first.insert(logits.first.end(), both.begin(), middle);
      logits.second.insert(logits.second.end(), middle, both.end());
    }
    return logits;
  }

  static Piece PieceOf(std::vector<TokenId> tokens, uint32_t begin) {
    return {.begin = begin, .tokens = std::move(tokens), .blocks_sent = (begin + 7) / 8};
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
  std::vector<std::unique_ptr<Rank>> ranks_;
  double largest_diff_ = 0;
};

TEST_P(DraftHeadTest, LogitsAndGuesses) {
  for (const GoldenCase& one : golden_.cases) {
    ASSERT_TRUE(one.draft.has_value());
    const auto [logits, draft_logits] = Prefill(one, kMaxTokens);
    Compare(logits, one.logits, one, "the model");
    Compare(draft_logits, one.draft->logits, one, "its draft head");
    // From the first greedy token on, each with the state of the guess before.
    auto at = static_cast<uint32_t>(one.tokens.size());
    TokenId token = one.greedy.front();
    Rows guesses;
    for (const TokenId expected : one.draft->guesses) {
      const Piece piece = PieceOf({token}, at++);
      guesses.push_back(OnAllRanks([&](Rank& rank) { return rank.Guess(piece); }).at(0));
      const auto best = std::max_element(guesses.back().begin(), guesses.back().end());
      EXPECT_EQ(best - guesses.back().begin(), expected);
      token = expected;
    }
    Compare(guesses, one.draft->guess_logits, one, "its guesses");
  }
}

// As everywhere on the CPU, a row's bits do not depend on the chunks.
TEST_P(DraftHeadTest, ChunksGiveTheSameBits) {
  const GoldenCase& one = golden_.cases[2];
  const auto whole = Prefill(one, kMaxTokens);
  EXPECT_EQ(Prefill(one, 5), whole);
  EXPECT_EQ(Prefill(one, 1), whole);
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

}  // namespace
}  // namespace tandem::worker
