#include "tests/worker/runtime/draft_rig.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "kernels/factory.h"
#include "tools/cuda_emulation/emulated_backend.h"

namespace tandem::worker {

std::string NameOf(const ::testing::TestParamInfo<Place>& param) {
  switch (param.param) {
    case Place::kHost:
      return "host";
    case Place::kFakeDevice:
      return "device";
    case Place::kFakeGraphs:
      return "graphs";
    case Place::kEmulatedCuda:
      return "emulation";
  }
  return "";
}

config::WorkerConfig DraftConfig(Place place, const std::string& model) {
  config::WorkerConfig config = LlamaOptions(place == Place::kHost ? "cpu" : "cuda").config;
  config.model.path = model;
  config.model.spec.max_model_len = 64;
  config.cache = {.block_size = 8, .num_kv_blocks = kDraftBlocks};
  config.cache.kv_cache_type = tensor::Type::kF16;
  config.limits = {.max_num_seqs = 16, .max_num_batched_tokens = 64};
  config.transport.max_result_bytes = {1 << 20};
  return config;
}

void RegisterPlace(Place place, const std::shared_ptr<FakeDeviceNotes>& notes) {
  if (place == Place::kEmulatedCuda) {
    kernels::RegisterCuda([](int) { return kernels::cuda::MakeEmulatedBackend(); });
  } else {
    RegisterFakeDevice({.graphs = place == Place::kFakeGraphs}, notes);
  }
}

absl::StatusOr<StartedRunner> StartRunner(const config::WorkerConfig& config) {
  StartedRunner started;
  TANDEM_ASSIGN_OR_RETURN(started.model, LoadModel({.config = config}));
  started.runner = std::make_unique<ModelRunner>(
      *started.model, RunnerOptions{.config = config, .kv_cache_bytes = 0, .poison = true});
  TANDEM_RETURN_IF_ERROR(started.runner->Prepare().status());
  TANDEM_RETURN_IF_ERROR(started.runner->Start(Epoch{1}, {kDraftBlocks}, nullptr));
  return started;
}

void WantGuesses(step::StepDescriptor& step) {
  for (step::RowRequest& row : step.rows) row.wants |= step::kWantGuess;
}

void MakeDrafts(size_t sequence, step::StepDescriptor& step, uint32_t num_again) {
  const uint32_t begin = step.query_offsets[sequence] + num_again;
  const uint32_t num_drafts = step.query_offsets[sequence + 1] - begin - 1;
  step.sequences[sequence].num_drafts = num_drafts;
  const auto last = std::ranges::find(step.rows, begin + num_drafts, &step::RowRequest::token);
  const auto at = last - step.rows.begin();
  last->wants = step::kWantSample;  // no guess: the step has no row for what follows the last draft
  for (uint32_t i = 0; i < num_drafts; ++i) {
    step.rows.insert(step.rows.begin() + at + i,
                     {.token = begin + i, .wants = step::kWantSample | step::kWantGuess});
    step.sampling.insert(step.sampling.begin() + at, {.temperature = 0});
  }
}

Tokens Sampled(const step::StepResult& result) {
  Tokens tokens;
  for (const step::RowResult& row : result.rows) tokens.push_back(row.tokens.at(0));
  return tokens;
}

std::vector<RanStep> RunDraftSteps(ModelRunner& runner) {
  std::vector<Piece> pieces;
  for (uint32_t s = 0; s < 9; ++s) {
    Piece piece{s, static_cast<int32_t>(2 * s), 0, {}};
    for (uint32_t t = 0; t < 2 + s % 3; ++t) {
      piece.tokens.push_back(static_cast<TokenId>(30 * s + 7 * t));
    }
    pieces.push_back(piece);
  }
  std::vector<RanStep> all;
  const auto run = [&](step::StepDescriptor step) {
    const auto result = runner.Run(step, Soon());
    ASSERT_TRUE(result.ok()) << result.status();
    all.push_back({std::move(step), *result});
    for (Piece& piece : pieces) {
      piece.begin += static_cast<uint32_t>(piece.tokens.size());
      piece.blocks_sent = (piece.begin + 7) / 8;
      piece.tokens = {static_cast<TokenId>(10 * piece.slot + piece.begin)};
    }
  };
  for (uint64_t id = 1; id <= 4; ++id) {
    step::StepDescriptor step = MakeStep(id, pieces);
    WantGuesses(step);
    if (id > 1) ReferToSamples(step);
    run(std::move(step));
  }
  pieces[0].tokens.resize(3, 0);
  pieces[3].tokens.resize(6, 0);
  step::StepDescriptor drafts = MakeStep(5, pieces);
  WantGuesses(drafts);
  MakeDrafts(0, drafts);
  MakeDrafts(3, drafts);
  run(std::move(drafts));
  pieces[0].begin -= 2;
  step::StepDescriptor last = MakeStep(6, pieces);
  WantGuesses(last);
  run(std::move(last));
  return all;
}

}  // namespace tandem::worker
