#include "worker/runtime/model_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/model/kv_cache_type.h"

namespace tandem::worker {
namespace {

// The largest batch that the options allow, as shapes without data.
Batch LargestBatch(const RunnerOptions& options, size_t num_groups) {
  Batch batch;
  batch.tokens = options.max_num_batched_tokens;
  batch.num_seqs = std::min(options.max_num_seqs, batch.tokens);
  batch.max_query_len = std::min(options.max_num_batched_tokens, options.max_model_len);
  batch.max_context_len = options.max_model_len;
  const uint32_t stride = (options.max_model_len + options.block_size - 1) / options.block_size;
  batch.groups.assign(num_groups,
                      {.block_tables = nullptr, .table_stride = stride, .slots = nullptr});
  return batch;
}

LogprobArrays TakeLogprobs(Arena& arena, size_t count) {
  return {.ids = arena.Take<int32_t>(count),
          .logprobs = arena.Take<float>(count),
          .ranks = arena.Take<int32_t>(count)};
}

// The largest slice of the head, likewise.
HeadSlice LargestSlice(const RunnerOptions& options) {
  HeadSlice slice;
  slice.num_rows = HeadSliceRows(options.max_num_seqs, options.max_num_batched_tokens);
  slice.num_samples = std::min(options.max_num_seqs, slice.num_rows);
  slice.num_logprob_rows = slice.num_rows;
  slice.num_logprobs = slice.num_rows * kMaxRowLogprobs;
  return slice;
}

absl::Status CheckOptions(const RunnerOptions& options, const model::ModelSpec& spec) {
  auto positive = [](uint64_t value, const char* what) {
    return value > 0 ? absl::OkStatus()
                     : absl::InvalidArgumentError(absl::StrCat(what, " must be positive, got 0"));
  };
  TANDEM_RETURN_IF_ERROR(positive(options.block_size, "block size"));
  TANDEM_RETURN_IF_ERROR(positive(options.max_num_seqs, "max-num-seqs"));
  TANDEM_RETURN_IF_ERROR(positive(options.max_num_batched_tokens, "max-num-batched-tokens"));
  TANDEM_RETURN_IF_ERROR(positive(options.max_model_len, "max-model-len"));
  if (options.max_model_len > spec.context_length) {
    return absl::InvalidArgumentError(absl::StrCat("max-model-len ", options.max_model_len,
                                                   " exceeds the model's context length ",
                                                   spec.context_length));
  }
  return model::CheckKvCacheType(spec, options.kv_cache_type);
}

}  // namespace

absl::StatusOr<RunnerPlan> ModelRunner::Prepare() {
  TANDEM_RETURN_IF_ERROR(CheckOptions(options_, model_.spec()));
  RunnerPlan plan;
  plan.weights_bytes = model_.weight_bytes();
  TANDEM_ASSIGN_OR_RETURN(plan.activation_bytes, CountActivations());
  plan.kv = ShapeOfKv(model_.spec(), model_.plan(), options_);
  TANDEM_ASSIGN_OR_RETURN(plan.num_kv_blocks, NumKvBlocks(plan.kv, options_));
  return plan;
}

absl::StatusOr<uint64_t> ModelRunner::CountActivations() {
  const model::ModelSpec& spec = model_.spec();
  kernels::Backend& backend = model_.backend();
  Arena counting;
  backend.BeginEncode(kernels::EncodeMode::kPlan);
  LayerContext context{.backend = backend, .comm = nullptr, .arena = counting};
  const Batch batch = LargestBatch(options_, spec.kv_groups.size());
  const Decoder::Hidden hidden =
      model_.decoder().Encode(context, batch, ShapeOnlyPages(spec, model_.plan(), options_));
  const HeadSlice slice = LargestSlice(options_);
  const float* logits = model_.decoder().EncodeHead(context, hidden, slice.tokens, slice.num_rows);
  EncodeSamples({}, slice, logits, nullptr);
  EncodeLogprobs({}, slice, logits, nullptr, TakeLogprobs(counting, slice.num_logprobs));
  TANDEM_ASSIGN_OR_RETURN(const uint64_t scratch_bytes, backend.FinishPlan());
  TANDEM_ASSIGN_OR_RETURN(activations_, backend.Allocate(counting.peak()));
  return counting.peak() + scratch_bytes;
}

absl::Status ModelRunner::Start(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                                std::unique_ptr<Communicator> comm) {
  const model::ModelSpec& spec = model_.spec();
  if (num_blocks.size() != spec.kv_groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "start names ", num_blocks.size(), " KV groups, the model has ", spec.kv_groups.size()));
  }
  limits_ = {.max_tokens = options_.max_num_batched_tokens,
             .max_seqs = options_.max_num_seqs,
             .max_model_len = options_.max_model_len,
             .vocab_size = spec.vocab_size,
             .block_size = options_.block_size,
             .num_blocks = num_blocks,
             .windows = {},
             .max_result_bytes = options_.max_result_bytes};
  for (const auto& group : spec.kv_groups) limits_.windows.push_back(group.window_tokens);
  kernels::Backend& backend = model_.backend();
  TANDEM_ASSIGN_OR_RETURN(KvCache kv,
                          KvCache::Create(spec, model_.plan(), options_, num_blocks, backend));
  TANDEM_ASSIGN_OR_RETURN(StepBuffers buffers, StepBuffers::Create(limits_, backend));
  kv_.emplace(std::move(kv));
  buffers_.emplace(std::move(buffers));
  comm_ = std::move(comm);
  epoch_ = epoch;
  return absl::OkStatus();
}

absl::StatusOr<step::StepResult> ModelRunner::Run(const step::StepDescriptor& step,
                                                  Deadline deadline) {
  TANDEM_CHECK(kv_.has_value()) << "Run before Start";
  if (step.epoch != epoch_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step of epoch ", step.epoch.value, " for a worker of epoch ", epoch_.value));
  }
  TANDEM_RETURN_IF_ERROR(step::Validate(step, limits_));
  if (step.sampling.size() > limits_.max_seqs) {
    return absl::InvalidArgumentError(absl::StrCat("step wants ", step.sampling.size(),
                                                   " samples, at most ", limits_.max_seqs,
                                                   " are planned for"));
  }
  step::StepResult result;
  result.step_id = step.step_id;
  result.epoch = step.epoch;
  result.rank = static_cast<uint32_t>(model_.plan().rank);

  kernels::Backend& backend = model_.backend();
  const int64_t begin = NowMicros();
  {
    StepGuard guard;
    TANDEM_RETURN_IF_ERROR(Encode(step, result));
    const int64_t encoded = NowMicros();
    TANDEM_RETURN_IF_ERROR(backend.Submit(deadline));
    result.timings.encode_us = static_cast<uint32_t>(encoded - begin);
    result.timings.submit_us = static_cast<uint32_t>(NowMicros() - encoded);
    if (absl::Status violation = guard.Check(); !violation.ok()) {
      (void)backend.Wait();  // the stream still runs on our buffers
      return violation;
    }
  }
  const int64_t submitted = NowMicros();
  TANDEM_RETURN_IF_ERROR(backend.Wait());
  result.timings.wait_us = static_cast<uint32_t>(NowMicros() - submitted);
  Collect(step, result);
  return result;
}

absl::Status ModelRunner::Encode(const step::StepDescriptor& step, step::StepResult& result) {
  kernels::Backend& backend = model_.backend();
  backend.BeginEncode(kernels::EncodeMode::kRun);
  TANDEM_ASSIGN_OR_RETURN(StepBuffers::Staged staged, buffers_->Stage(step, backend));
  Arena arena(activations_.data(), activations_.bytes());
  LayerContext context{.backend = backend, .comm = comm_.get(), .arena = arena};
  const Decoder::Hidden hidden = model_.decoder().Encode(context, staged.batch, kv_->pages());
  if (model_.plan().rank == 0) result.rows.resize(step.rows.size());
  const size_t mark = arena.used();
  for (const HeadSlice& slice : staged.head.slices) {
    EncodeSlice(context, staged.head, slice, hidden, step, result);
    arena.Rewind(mark);  // the stream runs in order: the next slice may take its place
  }
  const uint32_t num_samples = staged.head.num_samples;
  if (num_samples == 0) return absl::OkStatus();
  if (comm_ != nullptr && comm_->size() > 1) {
    comm_->Broadcast(buffers_->sampled(), num_samples * sizeof(int32_t), /*root=*/0);
  }
  buffers_->DownloadSampled(num_samples, backend);
  return absl::OkStatus();
}

void ModelRunner::EncodeSlice(LayerContext& context, const HeadBatch& head, const HeadSlice& slice,
                              const Decoder::Hidden& hidden, const step::StepDescriptor& step,
                              step::StepResult& result) {
  const float* logits = model_.decoder().EncodeHead(context, hidden, slice.tokens, slice.num_rows);
  if (model_.plan().rank != 0) return;
  const size_t vocab = model_.spec().vocab_size;
  for (uint32_t i = 0; i < slice.num_rows; ++i) {
    const uint32_t row = slice.first_row + i;
    if ((step.rows[row].wants & step::kWantLogits) == 0) continue;
    std::vector<float>& out = result.rows[row].logits;
    out.resize(vocab);
    context.backend.Download(out.data(), logits + i * vocab, vocab * sizeof(float));
  }
  EncodeSamples(head, slice, logits, buffers_->sampled());
  if (slice.num_logprobs == 0) return;
  const LogprobArrays logprobs = TakeLogprobs(context.arena, slice.num_logprobs);
  EncodeLogprobs(head, slice, logits, buffers_->sampled(), logprobs);
  buffers_->DownloadLogprobs(slice, logprobs, context.backend);
}

void ModelRunner::EncodeSamples(const HeadBatch& head, const HeadSlice& slice, const float* logits,
                                int32_t* sampled) {
  if (slice.num_samples == 0) return;
  model_.backend().Sample({.logits = logits,
                           .vocab = model_.spec().vocab_size,
                           .rows = slice.sampling,
                           .count = slice.num_samples,
                           .banned = head.banned,
                           .out = sampled + slice.first_sample});
}

void ModelRunner::EncodeLogprobs(const HeadBatch& head, const HeadSlice& slice, const float* logits,
                                 const int32_t* sampled, const LogprobArrays& out) {
  model_.backend().LogProbs({.logits = logits,
                             .vocab = model_.spec().vocab_size,
                             .rows = slice.logprob_rows,
                             .count = slice.num_logprob_rows,
                             .ids = head.logprob_ids,
                             .sampled = sampled,
                             .out_count = slice.num_logprobs,
                             .out_ids = out.ids,
                             .out_logprobs = out.logprobs,
                             .out_ranks = out.ranks});
}

void ModelRunner::Collect(const step::StepDescriptor& step, step::StepResult& result) const {
  size_t next_sample = 0, next_logprob = 0;
  for (size_t row = 0; row < result.rows.size(); ++row) {
    const step::RowRequest& wish = step.rows[row];
    step::RowResult& out = result.rows[row];
    if ((wish.wants & step::kWantSample) != 0)
      out.tokens = {buffers_->host_sampled()[next_sample++]};
    for (uint32_t i = 0; i < step::NumLogprobs(wish); ++i) {
      out.logprobs.push_back(buffers_->Logprob(next_logprob++));
    }
  }
}

}  // namespace tandem::worker
