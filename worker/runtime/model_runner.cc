#include "worker/runtime/model_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"

namespace tandem::worker {
namespace {

// The largest batch that the options allow, as shapes without data.
Batch LargestBatch(const RunnerOptions& options, size_t num_groups) {
  Batch batch;
  batch.tokens = options.max_num_batched_tokens;
  batch.num_seqs = std::min(options.max_num_seqs, batch.tokens);
  batch.num_rows = options.max_num_seqs;
  batch.max_query_len = std::min(options.max_num_batched_tokens, options.max_model_len);
  batch.max_context_len = options.max_model_len;
  const uint32_t stride = (options.max_model_len + options.block_size - 1) / options.block_size;
  batch.groups.assign(num_groups,
                      {.block_tables = nullptr, .table_stride = stride, .slots = nullptr});
  return batch;
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
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<model::MemoryPlan> ModelRunner::Prepare() {
  const model::ModelSpec& spec = model_.spec();
  TANDEM_RETURN_IF_ERROR(CheckOptions(options_, spec));
  TANDEM_ASSIGN_OR_RETURN(const uint64_t activation_bytes, CountActivations());
  model::MemoryRequest request{
      .weights_bytes = model_.weight_bytes(),
      .activation_bytes = activation_bytes,
      .kv_bytes = options_.kv_cache_bytes,
      .kv_bytes_per_token = model::KvBytesPerToken(spec, model_.plan(), options_.kv_cache_type),
      .block_tokens = options_.block_size,
      .num_blocks = std::nullopt,
      .available_bytes = std::nullopt};
  if (options_.num_kv_blocks != 0) request.num_blocks = options_.num_kv_blocks;
  TANDEM_ASSIGN_OR_RETURN(model::MemoryPlan plan, model::MakeMemoryPlan(request));
  plan.num_blocks = std::min<uint64_t>(plan.num_blocks, MaxKvBlocks(options_));
  return plan;
}

absl::StatusOr<uint64_t> ModelRunner::CountActivations() {
  const model::ModelSpec& spec = model_.spec();
  kernels::Backend& backend = model_.backend();
  Arena counting;
  backend.BeginEncode(kernels::EncodeMode::kPlan);
  LayerContext context{.backend = backend, .comm = nullptr, .arena = counting};
  const Batch batch = LargestBatch(options_, spec.kv_groups.size());
  const float* logits =
      model_.decoder().Encode(context, batch, ShapeOnlyPages(spec, model_.plan(), options_));
  backend.Sample({.logits = logits,
                  .vocab = spec.vocab_size,
                  .rows = nullptr,
                  .count = batch.num_rows,
                  .banned = nullptr,
                  .out = nullptr});
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
  if (step.rows.size() > limits_.max_seqs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "step wants ", step.rows.size(), " rows, at most ", limits_.max_seqs, " are planned for"));
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
  CollectSampled(step, result);
  return result;
}

absl::Status ModelRunner::Encode(const step::StepDescriptor& step, step::StepResult& result) {
  kernels::Backend& backend = model_.backend();
  backend.BeginEncode(kernels::EncodeMode::kRun);
  TANDEM_ASSIGN_OR_RETURN(StepBuffers::Staged staged, buffers_->Stage(step, backend));
  Arena arena(activations_.data(), activations_.bytes());
  LayerContext context{.backend = backend, .comm = comm_.get(), .arena = arena};
  const float* logits = model_.decoder().Encode(context, staged.batch, kv_->pages());
  EncodeRowOutputs(step, staged.sampling, logits, result);
  return absl::OkStatus();
}

void ModelRunner::EncodeRowOutputs(const step::StepDescriptor& step, const SamplingBatch& sampling,
                                   const float* logits, step::StepResult& result) {
  kernels::Backend& backend = model_.backend();
  const uint32_t vocab = model_.spec().vocab_size;
  const bool samples_here = model_.plan().rank == 0;
  if (samples_here) {
    result.rows.resize(step.rows.size());
    for (size_t row = 0; row < step.rows.size(); ++row) {
      if ((step.rows[row].wants & step::kWantLogits) == 0) continue;
      result.rows[row].logits.resize(vocab);
      backend.Download(result.rows[row].logits.data(), logits + row * vocab, vocab * sizeof(float));
    }
  }
  if (sampling.count == 0) return;
  if (samples_here) {
    backend.Sample({.logits = logits,
                    .vocab = vocab,
                    .rows = sampling.rows,
                    .count = sampling.count,
                    .banned = sampling.banned,
                    .out = buffers_->sampled()});
  }
  if (comm_ != nullptr && comm_->size() > 1) {
    comm_->Broadcast(buffers_->sampled(), sampling.count * sizeof(int32_t), /*root=*/0);
  }
  buffers_->DownloadSampled(sampling.count, backend);
}

void ModelRunner::CollectSampled(const step::StepDescriptor& step, step::StepResult& result) const {
  if (result.rows.empty()) return;
  size_t next = 0;
  for (size_t row = 0; row < step.rows.size(); ++row) {
    if ((step.rows[row].wants & step::kWantSample) == 0) continue;
    result.rows[row].tokens = {buffers_->host_sampled()[next++]};
  }
}

}  // namespace tandem::worker
