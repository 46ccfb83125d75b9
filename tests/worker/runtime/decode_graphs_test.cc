// Decode graphs: which steps are replayed, how they are padded, and that a replayed step gives the
// tokens that the same step gives when it is encoded.
#include "worker/runtime/decode_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/run_ranks.h"
#include "tests/worker/comm/local_communicator.h"
#include "tests/worker/runtime/fake_device.h"
#include "tests/worker/runtime/runner_rig.h"

namespace tandem::worker {
namespace {

using Sizes = std::vector<uint32_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(GraphBatchSizesTest, EverySizeThenStepsThenEighths) {
  EXPECT_EQ(GraphBatchSizes(1), (Sizes{1}));
  EXPECT_EQ(GraphBatchSizes(7), (Sizes{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(GraphBatchSizes(8), (Sizes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(GraphBatchSizes(30), (Sizes{1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 30}));
  const Sizes sizes = GraphBatchSizes(300);
  EXPECT_EQ(Sizes(sizes.end() - 13, sizes.end()),
            (Sizes{112, 120, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 300}));
}

// Few enough to capture at a server's start, and close enough that padding costs little.
TEST(GraphBatchSizesTest, FewAndClose) {
  for (const uint32_t most : {64u, 100u, 256u, 1000u, 4096u, 65536u}) {
    const Sizes sizes = GraphBatchSizes(most);
    EXPECT_EQ(sizes.back(), most);
    EXPECT_LE(sizes.size(), 15u + 8u * static_cast<size_t>(std::bit_width(most / 64)));
    for (size_t i = 1; i < sizes.size(); ++i) {
      const uint32_t first = sizes[i - 1] + 1;  // padded the most
      EXPECT_LE(sizes[i] - first, std::max(7u, first / 8)) << first << " in " << sizes[i];
    }
  }
}

step::StepDescriptor TwoDecodes() { return MakeStep(1, {{0, 0, 9, {5}}, {1, 4, 3, {6}}}); }

TEST(IsReplayableTest, AllDecodeAndSamplesOnly) {
  EXPECT_TRUE(IsReplayable(TwoDecodes()));
  step::StepDescriptor sampled = TwoDecodes();
  sampled.sampling[1] = {
      .temperature = 0.7f, .top_p = 0.9f, .seed = 3, .adjustments = {{.id = 1, .bias = 2}}};
  EXPECT_TRUE(IsReplayable(sampled));
  sampled.rows[0].wants |= step::kWantGuess;
  EXPECT_TRUE(IsReplayable(sampled)) << "a guess is made outside of the graph";
  for (const uint32_t wants :
       {step::kWantSample | step::kWantLogits, step::kWantSample | step::kWantSampleLogprob,
        uint32_t{step::kWantTopLogprobs}}) {
    step::StepDescriptor more = TwoDecodes();
    more.rows[1].wants = wants;
    EXPECT_FALSE(IsReplayable(more)) << wants;
  }
  step::StepDescriptor adapted = TwoDecodes();
  adapted.sequences[1].adapter = 1;
  EXPECT_FALSE(IsReplayable(adapted));
  step::StepDescriptor silent = TwoDecodes();
  silent.rows.pop_back();
  silent.sampling.pop_back();
  EXPECT_FALSE(IsReplayable(silent));
  EXPECT_FALSE(IsReplayable(MakeStep(1, {{0, 0, 9, {5}}, {1, 4, 3, {6, 7}}})));
  // Prompts of one token: the step's kind is explicit.
  step::StepDescriptor prefill = MakeStep(1, {{0, 0, 0, {5}}});
  prefill.kind = step::StepKind::kPrefill;
  EXPECT_FALSE(IsReplayable(prefill));
}

TEST(PadDecodeTest, PaddedSequencesReadAndWriteNothing) {
  const step::StepDescriptor step = TwoDecodes();
  step::StepDescriptor padded;
  PadDecode(step, 4, padded);
  EXPECT_EQ(padded.num_scheduled_tokens, 4u);
  EXPECT_EQ(padded.num_seqs_active, 4u);
  EXPECT_EQ(padded.tokens, (std::vector<TokenId>{5, 6, 0, 0}));
  EXPECT_EQ(padded.positions, (std::vector<int32_t>{9, 3, 0, 0}));
  EXPECT_EQ(padded.query_offsets, (Sizes{0, 1, 2, 3, 4}));
  ASSERT_EQ(padded.sequences.size(), 4u);
  EXPECT_EQ(padded.sequences[1], step.sequences[1]);
  EXPECT_EQ(padded.sequences[2].context_len, 0u);
  EXPECT_EQ(padded.groups[0].slot_mapping, (std::vector<int32_t>{9, 35, -1, -1}));
  ASSERT_EQ(padded.rows.size(), 4u);
  EXPECT_EQ(padded.rows[3].token, 3u);
  ASSERT_EQ(padded.sampling.size(), 4u);
  EXPECT_EQ(padded.sampling[3].temperature, 0.0f);
  // As many as there are: the same step.
  PadDecode(step, 2, padded);
  EXPECT_EQ(padded, step);
}

RunnerOptions Options() {
  return {.config = {
              .model = {.spec = {.max_model_len = 64}},
              .cache = {.block_size = 8, .num_kv_blocks = 48, .kv_cache_type = tensor::Type::kF32},
              .limits = {.max_num_seqs = 6, .max_num_batched_tokens = 64},
              .transport = {.max_result_bytes = {1 << 20}}}};
}

// Prompts of 3, 4, 5, ... tokens, decoded together for some steps, one sequence after another
// leaving: batches of 6, 5, ... down to 1. Every step's tokens, in order. With `by_reference`, a
// step refers to the samples of the one before instead of naming them.
std::vector<TokenId> DecodeAll(ModelRunner& runner, uint32_t num_seqs, size_t num_groups = 1,
                               bool by_reference = false) {
  constexpr uint32_t kStepsPerBatch = 4;  // crosses block borders
  std::vector<TokenId> all;
  std::vector<Piece> pieces;
  for (uint32_t s = 0; s < num_seqs; ++s) {
    Piece piece{s, static_cast<int32_t>(8 * s), 0, {}};
    for (uint32_t t = 0; t < 3 + s; ++t)
      piece.tokens.push_back(static_cast<TokenId>(40 * s + 7 * t));
    pieces.push_back(piece);
  }
  uint64_t id = 0;
  uint32_t first = 0;  // sample of the step before that is of the first piece
  const auto run = [&] {
    step::StepDescriptor step = MakeStep(++id, pieces, num_groups);
    if (by_reference && id > 1) ReferToSamples(step, std::exchange(first, 0));
    const auto result = runner.Run(std::move(step), Soon());
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].begin += static_cast<uint32_t>(pieces[i].tokens.size());
      pieces[i].blocks_sent = (pieces[i].begin + 7) / 8;
      const TokenId next = result->rows[i].tokens.at(0);
      pieces[i].tokens = {next};
      all.push_back(next);
    }
  };
  run();
  while (!pieces.empty()) {
    for (uint32_t i = 0; i < kStepsPerBatch; ++i) run();
    pieces.erase(pieces.begin());
    first = 1;
  }
  return all;
}

// Three sequences whose next tokens are those that the step before has drawn, by reference; what
// rank 0 samples.
std::vector<TokenId> DecodeReferring(ModelRunner& runner) {
  std::vector<TokenId> sampled;
  std::vector<Piece> pieces = {{0, 0, 0, {1, 2, 3}}, {1, 8, 0, {4, 5, 6, 7}}, {2, 16, 0, {8}}};
  for (uint64_t id = 1; id <= 12; ++id) {
    step::StepDescriptor step = MakeStep(id, pieces);
    if (id > 1) ReferToSamples(step);
    const auto result = runner.Run(std::move(step), Soon());
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return sampled;
    for (const auto& row : result->rows) sampled.push_back(row.tokens.at(0));
    for (Piece& piece : pieces) {
      piece.begin += static_cast<uint32_t>(piece.tokens.size());
      piece.tokens = {0};
    }
  }
  return sampled;
}

// Three sequences that are fed tokens of the test's choice, so that all ranks see the same steps;
// what rank 0 samples.
std::vector<TokenId> DecodeFed(ModelRunner& runner) {
  std::vector<TokenId> sampled;
  std::vector<Piece> pieces = {{0, 0, 0, {1, 2, 3}}, {1, 8, 0, {4, 5, 6, 7}}, {2, 16, 0, {8}}};
  for (uint64_t id = 1; id <= 12; ++id) {
    const auto result = runner.Run(MakeStep(id, pieces), Soon());
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return sampled;
    for (const auto& row : result->rows) sampled.push_back(row.tokens.at(0));
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].begin += static_cast<uint32_t>(pieces[i].tokens.size());
      pieces[i].tokens = {static_cast<TokenId>(10 * id + i)};
    }
  }
  return sampled;
}

class DecodeGraphsTest : public ::testing::Test {
 protected:
  std::vector<TokenId> Decode(const RunnerOptions& options, const std::string& path = kLlama,
                              bool graphs = true, bool by_reference = false) {
    RegisterFakeDevice({.graphs = graphs}, notes_);
    auto model = LoadLlama("cuda", 0, 1, path);
    EXPECT_TRUE(model.ok()) << model.status();
    ModelRunner runner(**model, options);
    const auto plan = runner.Prepare();
    EXPECT_TRUE(plan.ok()) << plan.status();
    table_bytes_ = plan->table_bytes;
    notes_->Clear();
    EXPECT_TRUE(runner.Start(Epoch{1}, plan->kv.NumBlocks(plan->num_kv_blocks), nullptr).ok());
    started_ = std::exchange(*notes_, {});
    return DecodeAll(runner, options.config.limits.max_num_seqs, (*model)->spec().kv_groups.size(),
                     by_reference);
  }

  void ExpectRanksAgree(std::vector<TokenId> (*decode)(ModelRunner& runner));

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  FakeDeviceNotes started_;  // what Start did
  uint64_t table_bytes_ = 0;
};

TEST_F(DecodeGraphsTest, ReplayedTokensAreTheEncodedOnes) {
  RunnerOptions eager = Options();
  eager.config.device.enforce_eager = true;
  const std::vector<TokenId> expected = Decode(eager);
  EXPECT_EQ(started_.captures, 0u);
  EXPECT_EQ(notes_->replays, 0u);
  EXPECT_EQ(Decode(Options()), expected);
  EXPECT_EQ(started_.captures, 6u);
  EXPECT_EQ(notes_->replays, 6u * 4);
  EXPECT_EQ(table_bytes_, 6u * 8 * sizeof(int32_t));
}

// Also in a batch smaller than the one before.
TEST_F(DecodeGraphsTest, AStepTakesTheTokensThatTheOneBeforeHasDrawn) {
  RunnerOptions eager = Options();
  eager.config.device.enforce_eager = true;
  const std::vector<TokenId> expected = Decode(eager);
  EXPECT_EQ(Decode(eager, kLlama, true, /*by_reference=*/true), expected);
  EXPECT_EQ(Decode(Options(), kLlama, true, /*by_reference=*/true), expected);
  EXPECT_EQ(notes_->replays, 6u * 4);
}

TEST_F(DecodeGraphsTest, EveryKvGroupHasItsTables) {
  const std::string model = "tests/golden/arch/gemma3/model.gguf";
  RunnerOptions eager = Options();
  eager.config.device.enforce_eager = true;
  const std::vector<TokenId> expected = Decode(eager, model);
  EXPECT_EQ(Decode(Options(), model), expected);
  EXPECT_EQ(notes_->replays, 6u * 4);
  EXPECT_EQ(table_bytes_, 2u * 6 * 8 * sizeof(int32_t));
}

// Padding has slot 0, which a sequence leaves first: its state is neither read nor written.
TEST_F(DecodeGraphsTest, RecurrentStatesStayWithTheirSlots) {
  const std::string model = "tests/golden/arch/qwen35-pattern/model.gguf";
  RunnerOptions eager = Options();
  eager.config.device.enforce_eager = true;
  const std::vector<TokenId> expected = Decode(eager, model);
  EXPECT_EQ(Decode(Options(), model), expected);
  EXPECT_EQ(notes_->replays, 6u * 4);
}

TEST_F(DecodeGraphsTest, AReplayIsTwoCopiesAndNextToNoOps) {
  Decode(Options());
  const uint64_t steps = 1 + 6 * 4;
  EXPECT_EQ(notes_->uploads.size(), steps);
  EXPECT_EQ(notes_->downloads.size(), steps);
  // An update of the block tables for every replay; the rest is the one step of prompts.
  const uint64_t with_graphs = notes_->ops - notes_->replays;
  Decode(Options(), kLlama, /*graphs=*/false);
  EXPECT_EQ(notes_->ops, with_graphs * steps);
}

TEST_F(DecodeGraphsTest, ABackendWithoutGraphsEncodes) {
  Decode(Options(), kLlama, /*graphs=*/false);
  EXPECT_EQ(started_.captures, 0u);
  EXPECT_EQ(notes_->replays, 0u);
}

TEST_F(DecodeGraphsTest, AStepWithMoreRequestsIsEncodedAndAgrees) {
  RegisterFakeDevice({}, notes_);
  auto model = LoadLlama("cuda");
  ASSERT_TRUE(model.ok()) << model.status();
  ModelRunner runner(**model, Options());
  ASSERT_TRUE(runner.Prepare().ok());
  ASSERT_TRUE(runner.Start(Epoch{1}, {48}, nullptr).ok());
  ASSERT_TRUE(runner.Run(MakeStep(1, {{0, 0, 0, {1, 2, 3}}}), Soon()).ok());
  notes_->Clear();
  const auto replayed = runner.Run(MakeStep(2, {{0, 0, 3, {4}}}), Soon());
  EXPECT_EQ(notes_->replays, 1u);
  step::StepDescriptor more = MakeStep(3, {{0, 0, 3, {4}}});
  more.rows[0].wants |= step::kWantSampleLogprob;
  const auto encoded = runner.Run(more, Soon());
  EXPECT_EQ(notes_->replays, 1u);
  ASSERT_TRUE(replayed.ok() && encoded.ok()) << replayed.status() << encoded.status();
  EXPECT_EQ(replayed->rows[0].tokens, encoded->rows[0].tokens);
  EXPECT_EQ(encoded->rows[0].logprobs.size(), 1u);
}

// Sampled at a temperature, with ids that are banned or that a mask lacks: sampling rows of a
// replay are the step's own.
TEST_F(DecodeGraphsTest, SamplingParametersReachAReplay) {
  std::vector<std::vector<TokenId>> tokens;
  for (const bool eager : {true, false}) {
    RegisterFakeDevice({}, notes_);
    auto model = LoadLlama("cuda");
    ASSERT_TRUE(model.ok()) << model.status();
    RunnerOptions options = Options();
    options.config.device.enforce_eager = eager;
    ModelRunner runner(**model, options);
    ASSERT_TRUE(runner.Prepare().ok());
    ASSERT_TRUE(runner.Start(Epoch{1}, {48}, nullptr).ok());
    tokens.emplace_back();
    std::set<TokenId> banned;
    for (uint64_t i = 0; i < 12; ++i) {
      step::StepDescriptor step =
          MakeStep(i + 1, {{0, 0, 0, {9}}, {1, 8, 0, {11}}, {2, 16, 0, {9}}});
      for (const TokenId id : banned) {
        step.sampling[0].adjustments.push_back({.id = id, .bias = -kInfinity});
      }
      step::TokenMask& allowed = step.sampling[2].allowed;
      allowed.assign(step::MaskWords((*model)->spec().vocab_size), 0);
      for (uint32_t id = 0; id < (*model)->spec().vocab_size; ++id) {
        const auto token = static_cast<TokenId>(id);
        if (!banned.contains(token)) step::Insert(token, allowed);
      }
      step.sampling[1] = {.temperature = 3.0f, .seed = 7, .position = i, .adjustments = {}};
      const auto result = runner.Run(step, Soon());
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->rows[0].tokens, result->rows[2].tokens) << i;
      for (const auto& row : result->rows) tokens.back().push_back(row.tokens[0]);
      banned.insert(result->rows[0].tokens[0]);  // the next step must take another
    }
  }
  EXPECT_EQ(tokens[0], tokens[1]);
  EXPECT_NE(tokens[0][0], tokens[0][3]);
}

// Two ranks give what one rank that encodes its steps gives: collectives belong to the graph.
void DecodeGraphsTest::ExpectRanksAgree(std::vector<TokenId> (*decode)(ModelRunner& runner)) {
  std::vector<std::shared_ptr<FakeDeviceNotes>> notes;
  std::vector<std::unique_ptr<LoadedModel>> models;
  std::vector<kernels::HostStream*> streams;
  for (int rank = 0; rank < 2; ++rank) {
    notes.push_back(std::make_shared<FakeDeviceNotes>());
    RegisterFakeDevice({}, notes.back());
    auto model = LoadLlama("cuda", rank, 2);
    ASSERT_TRUE(model.ok()) << model.status();
    models.push_back(*std::move(model));
    streams.push_back(models.back()->backend().host_stream());
  }
  auto comms = MakeLocalCommunicators(streams);
  std::vector<TokenId> found;
  RunRanks(2, [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    ModelRunner runner(*models[r], Options());
    ASSERT_TRUE(runner.Prepare().ok());
    ASSERT_TRUE(runner.Start(Epoch{1}, {48}, std::move(comms[r])).ok());
    const std::vector<TokenId> tokens = decode(runner);
    if (rank == 0) found = tokens;
  });
  EXPECT_EQ(notes[0]->replays, 11u);
  EXPECT_EQ(notes[1]->replays, 11u);

  // The same steps on one rank that encodes them.
  RegisterFakeDevice({.graphs = false}, notes_);
  auto whole = LoadLlama("cuda");
  ASSERT_TRUE(whole.ok()) << whole.status();
  ModelRunner runner(**whole, Options());
  ASSERT_TRUE(runner.Prepare().ok());
  ASSERT_TRUE(runner.Start(Epoch{1}, {48}, nullptr).ok());
  EXPECT_EQ(found, decode(runner));
}

TEST_F(DecodeGraphsTest, RanksReplayTogether) { ExpectRanksAgree(&DecodeFed); }

// Rank 0 draws, all ranks compute the drawn token.
TEST_F(DecodeGraphsTest, ReferencesReachAllRanks) { ExpectRanksAgree(&DecodeReferring); }

}  // namespace
}  // namespace tandem::worker
