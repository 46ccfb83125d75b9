// A rank of a model with its draft head, run by hand: prompts, then guesses.
#ifndef TANDEM_TESTS_WORKER_MODEL_DRAFT_RANK_H_
#define TANDEM_TESTS_WORKER_MODEL_DRAFT_RANK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "tests/worker/runtime/runner_rig.h"
#include "worker/runtime/planner.h"

namespace tandem::worker {

using Rows = std::vector<std::vector<float>>;

inline constexpr uint32_t kMaxTokens = 130;  // of a prompt
inline constexpr uint32_t kMaxLength = kMaxTokens + 4;
inline constexpr uint32_t kMaxSeqs = 2;

// One rank of a model with its draft head, and the memory that a runner would give it: of
// activations exactly what the plan counts.
class DraftRank {
 public:
  static RunnerOptions Options(const LoadOptions& load) {
    RunnerOptions options{.config = load.config};
    options.config.cache = {
        .block_size = 8, .num_kv_blocks = 40, .kv_cache_type = tensor::Type::kF32};
    options.config.limits.max_num_seqs = kMaxSeqs;
    options.config.limits.max_num_batched_tokens = kMaxTokens;
    options.config.transport.max_result_bytes = {1 << 20};
    return options;
  }

  // Weights, and all memory.
  static absl::StatusOr<std::unique_ptr<DraftRank>> Load(const LoadOptions& load) {
    std::unique_ptr<DraftRank> rank(new DraftRank);
    TANDEM_ASSIGN_OR_RETURN(rank->model_, LoadModel(load));
    const RunnerOptions options = Options(load);
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
    const size_t states = kMaxSeqs + 1 + kMaxTokens;
    TANDEM_ASSIGN_OR_RETURN(rank->states_,
                            backend.Allocate(states * spec.hidden_size * sizeof(float)));
    return rank;
  }

  kernels::Backend& backend() { return model_->backend(); }
  void Join(std::unique_ptr<Communicator> comm) { comm_ = std::move(comm); }

  // Logits of the model, then of its draft head, for the requested tokens of the next chunk of a
  // prompt: 2 * rows on rank 0, none on other ranks.
  absl::StatusOr<Rows> Prefill(const Piece& piece, const std::vector<uint32_t>& rows) {
    return Run({piece}, rows, [&](LayerContext& context, const StepBuffers::Staged& staged) {
      float* const before = State(kMaxSeqs);
      const uint32_t tokens = staged.batch.tokens;
      if (piece.begin == 0) {
        backend().Upload(before, zeros_.data(), zeros_.size() * sizeof(float));
      } else {
        Copy(State(piece.slot), 1, before);
      }
      const OutputHead& output = model_->decoder().output();
      Hidden hidden =
          model_->decoder().Encode(context, staged.batch, kv_.pages(), recurrent_.layers());
      Copy(output.EncodeStates(context, tokens, hidden), tokens, State(kMaxSeqs + 1));
      EncodeLogits(context, output, hidden, staged.head);
      EncodeDraft(context, staged, before);
      Copy(State(kMaxSeqs + tokens), 1, State(piece.slot));
    });
  }

  // Logits of the draft head for the next token of sequences in adjacent slots, whose states are
  // the last ones: the model's, or the head's own of the guess before.
  absl::StatusOr<Rows> Guess(const std::vector<Piece>& pieces) {
    const auto count = static_cast<uint32_t>(pieces.size());
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < count; ++i) rows.push_back(i);
    return Run(pieces, rows, [&](LayerContext& context, const StepBuffers::Staged& staged) {
      float* const states = State(pieces.front().slot);
      Hidden hidden = EncodeDraft(context, staged, states);
      Copy(model_->draft_head()->output().EncodeStates(context, count, hidden), count, states);
    });
  }

 private:
  float* State(size_t row) {
    return reinterpret_cast<float*>(states_.data()) + row * zeros_.size();
  }

  template <typename EncodeBody>
  absl::StatusOr<Rows> Run(const std::vector<Piece>& pieces, const std::vector<uint32_t>& rows,
                           const EncodeBody& encode) {
    step::StepDescriptor step = MakeStep(1, pieces);
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
    TANDEM_RETURN_IF_ERROR(backend().SubmitAndWait(Soon()));
    const size_t vocab = model_->spec().vocab_size;
    Rows logits;
    for (size_t i = 0; i < downloaded_; ++i) {
      const float* const row = buffers_->host_logits() + i * vocab;
      logits.emplace_back(row, row + vocab);
    }
    return logits;
  }

  // As a runner does, in the memory that the model's activations were in.
  Hidden EncodeDraft(LayerContext& context, const StepBuffers::Staged& staged, float* states) {
    context.arena.Rewind(0);
    const Hidden hidden = model_->draft_head()->Encode(context, staged.batch, states, kv_.pages());
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

  std::unique_ptr<LoadedModel> model_;
  kernels::Buffer activations_;
  KvCache kv_;
  RecurrentStates recurrent_;
  DeviceTables tables_;
  std::optional<StepBuffers> buffers_;
  std::unique_ptr<Communicator> comm_;
  std::vector<float> zeros_;  // a state
  // The last state of each slot; then of a chunk the state before it, and those of its tokens.
  kernels::Buffer states_;
  size_t downloaded_ = 0;  // rows of logits
};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_MODEL_DRAFT_RANK_H_
