#include "worker/runtime/model_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/model/kv_cache_type.h"
#include "worker/runtime/shape_backend.h"

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

// The largest slice of the head, likewise.
HeadBatch LargestHead(const RunnerOptions& options) {
  HeadSlice slice;
  slice.num_rows = HeadSliceRows(options.max_num_seqs, options.max_num_batched_tokens);
  slice.num_samples = std::min(options.max_num_seqs, slice.num_rows);
  slice.num_logprob_rows = slice.num_rows;
  slice.num_logprobs = slice.num_rows * kMaxRowLogprobs;
  HeadBatch head;
  head.slices = {slice};
  head.num_samples = slice.num_samples;
  return head;
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

absl::Status ModelRunner::CheckFits() {
  const std::unique_ptr<kernels::Backend> shapes = MakeShapeBackend();
  return MakePlan(*shapes).status();
}

absl::StatusOr<RunnerPlan> ModelRunner::Prepare() {
  TANDEM_ASSIGN_OR_RETURN(RunnerPlan plan, MakePlan(model_.backend()));
  TANDEM_ASSIGN_OR_RETURN(activations_, model_.backend().Allocate(plan.activation_bytes));
  return plan;
}

absl::StatusOr<RunnerPlan> ModelRunner::MakePlan(kernels::Backend& backend) {
  TANDEM_RETURN_IF_ERROR(CheckOptions(options_, model_.spec()));
  RunnerPlan plan;
  plan.weights_bytes = model_.weight_bytes();
  if (const auto& memory = model_.device_memory(); memory.has_value()) {
    plan.device = {.total_bytes = memory->total_bytes,
                   .free_bytes = memory->free_bytes,
                   .utilization = options_.gpu_memory_utilization};
  }
  TANDEM_RETURN_IF_ERROR(CountActivations(backend, plan));
  plan.kv = ShapeOfKv(model_.spec(), model_.plan(), options_);
  const step::StepLimits limits = LimitsFor(plan.kv.NumBlocks(0));
  plan.buffers_bytes = StepBuffers::DeviceBytes(limits);
  if (UsesGraphs()) plan.graph_bytes = DecodeGraphs::DeviceBytes(limits);
  TANDEM_RETURN_IF_ERROR(SizeKvCache(options_, plan));
  return plan;
}

absl::Status ModelRunner::CountActivations(kernels::Backend& backend, RunnerPlan& plan) {
  const model::ModelSpec& spec = model_.spec();
  const auto pages = ShapeOnlyPages(spec, model_.plan(), options_);
  backend.BeginEncode(kernels::EncodeMode::kPlan);
  const auto count = [&](const Batch& batch, const HeadBatch& head) {
    Arena counting;
    LayerContext context{.backend = backend, .comm = nullptr, .arena = counting};
    encoder_.Encode(context, batch, head, pages, {});
    plan.activation_bytes = std::max<uint64_t>(plan.activation_bytes, counting.peak());
  };
  const Batch largest = LargestBatch(options_, spec.kv_groups.size());
  const HeadBatch head = LargestHead(options_);
  count(largest, head);
  // A decode step is another shape, not a smaller one: few rows, each with a whole context.
  for (const uint32_t size : GraphBatchSizes(largest.num_seqs)) {
    Batch decode = largest;
    decode.tokens = decode.num_seqs = size;
    decode.max_query_len = 1;
    HeadBatch rows = head;
    rows.num_samples = rows.slices[0].num_samples = rows.slices[0].num_rows = size;
    rows.slices[0].num_logprob_rows = rows.slices[0].num_logprobs = 0;
    count(decode, rows);
  }
  TANDEM_ASSIGN_OR_RETURN(plan.workspace_bytes, backend.FinishPlan());
  return absl::OkStatus();
}

step::StepLimits ModelRunner::LimitsFor(const std::vector<uint32_t>& num_blocks) const {
  const model::ModelSpec& spec = model_.spec();
  step::StepLimits limits = {.max_tokens = options_.max_num_batched_tokens,
                             .max_seqs = options_.max_num_seqs,
                             .max_model_len = options_.max_model_len,
                             .vocab_size = spec.vocab_size,
                             .block_size = options_.block_size,
                             .num_blocks = num_blocks,
                             .windows = {},
                             .max_result_bytes = options_.max_result_bytes};
  for (const auto& group : spec.kv_groups) limits.windows.push_back(group.window_tokens);
  return limits;
}

absl::Status ModelRunner::Start(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                                std::unique_ptr<Communicator> comm) {
  // What the epoch before had is given back first. The communicator is kept also when this fails:
  // others may hold it, to abort it.
  graphs_.reset();
  buffers_.reset();
  kv_.reset();
  comm_ = std::move(comm);
  const model::ModelSpec& spec = model_.spec();
  if (num_blocks.size() != spec.kv_groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "start names ", num_blocks.size(), " KV groups, the model has ", spec.kv_groups.size()));
  }
  limits_ = LimitsFor(num_blocks);
  kernels::Backend& backend = model_.backend();
  TANDEM_ASSIGN_OR_RETURN(KvCache kv,
                          KvCache::Create(spec, model_.plan(), options_, num_blocks, backend));
  TANDEM_ASSIGN_OR_RETURN(StepBuffers buffers, StepBuffers::Create(limits_, backend));
  kv_.emplace(std::move(kv));
  buffers_.emplace(std::move(buffers));
  epoch_ = epoch;
  return UsesGraphs() ? CaptureGraphs() : absl::OkStatus();
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
    TANDEM_RETURN_IF_ERROR(Encode(step));
    const int64_t encoded = NowMicros();
    TANDEM_RETURN_IF_ERROR(backend.Submit(deadline));
    result.timings.encode_us = static_cast<uint32_t>(encoded - begin);
    result.timings.submit_us = static_cast<uint32_t>(NowMicros() - encoded);
    if (absl::Status violation = NoteViolation(guard.Check()); !violation.ok()) {
      (void)backend.Wait();  // the stream still runs on our buffers
      return violation;
    }
  }
  const int64_t submitted = NowMicros();
  TANDEM_RETURN_IF_ERROR(backend.Wait());
  result.timings.wait_us = static_cast<uint32_t>(NowMicros() - submitted);
  if (model_.plan().rank == 0) Collect(step, result);
  return result;
}

absl::Status ModelRunner::NoteViolation(const absl::Status& violation) {
  if (violation.ok() || options_.strict) return violation;
  if (!violation_logged_) {
    TANDEM_LOG(kWarning) << violation.message() << "; this is logged once";
    violation_logged_ = true;
  }
  return absl::OkStatus();
}

absl::Status ModelRunner::CaptureGraphs() {
  TANDEM_ASSIGN_OR_RETURN(DecodeGraphs graphs,
                          DecodeGraphs::Capture(limits_, *buffers_, model_.backend(),
                                                [&](const Batch& batch, const HeadBatch& head) {
                                                  EncodeCompute(batch, head, nullptr);
                                                }));
  graphs_.emplace(std::move(graphs));
  return absl::OkStatus();
}

absl::Status ModelRunner::Encode(const step::StepDescriptor& step) {
  kernels::Backend& backend = model_.backend();
  const step::StepDescriptor* padded = graphs_.has_value() ? graphs_->Pad(step) : nullptr;
  TANDEM_ASSIGN_OR_RETURN(const StepBuffers::Staged staged,
                          buffers_->Stage(padded != nullptr ? *padded : step));
  backend.BeginEncode(kernels::EncodeMode::kRun);
  buffers_->Upload(backend);
  if (padded != nullptr) {
    graphs_->EncodeReplay(staged, backend);
  } else {
    EncodeCompute(staged.batch, staged.head, &step);
  }
  if (staged.head.num_samples + staged.head.num_logprobs > 0) {
    buffers_->DownloadResults(/*with_logprobs=*/model_.plan().rank == 0, backend);
  }
  return absl::OkStatus();
}

void ModelRunner::EncodeCompute(const Batch& batch, const HeadBatch& head,
                                const step::StepDescriptor* step) {
  Arena arena(activations_.data(), activations_.bytes());
  LayerContext context{.backend = model_.backend(), .comm = comm_.get(), .arena = arena};
  encoder_.Encode(context, batch, head, kv_->pages(),
                  {.sampled = buffers_->sampled(),
                   .logprobs = buffers_->logprobs(),
                   .on_logits = [&](const HeadSlice& slice, const float* logits) {
                     if (step != nullptr) EncodeLogits(*step, slice, logits);
                   }});
}

void ModelRunner::EncodeLogits(const step::StepDescriptor& step, const HeadSlice& slice,
                               const float* logits) {
  const auto wanted = [&](uint32_t i) {
    return (step.rows[slice.first_row + i].wants & step::kWantLogits) != 0;
  };
  const size_t vocab = model_.spec().vocab_size;
  for (uint32_t begin = 0, end = 0; begin < slice.num_rows; begin = end + 1) {
    // One copy for rows that stand together.
    for (end = begin; end < slice.num_rows && wanted(end);) ++end;
    if (end == begin) continue;
    buffers_->DownloadLogits(logits + begin * vocab, (end - begin) * vocab, model_.backend());
  }
}

void ModelRunner::Collect(const step::StepDescriptor& step, step::StepResult& result) const {
  const size_t vocab = model_.spec().vocab_size;
  const float* next_logits = buffers_->host_logits();
  size_t next_sample = 0, next_logprob = 0;
  for (const step::RowRequest& wish : step.rows) {
    step::RowResult& out = result.rows.emplace_back();
    if ((wish.wants & step::kWantSample) != 0) {
      out.tokens = {buffers_->host_sampled()[next_sample++]};
    }
    for (uint32_t i = 0; i < step::NumLogprobs(wish); ++i) {
      out.logprobs.push_back(buffers_->Logprob(next_logprob++));
    }
    if ((wish.wants & step::kWantLogits) == 0) continue;
    out.logits.assign(next_logits, next_logits + vocab);
    next_logits += vocab;
  }
}

}  // namespace tandem::worker
