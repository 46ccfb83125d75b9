#include "worker/runtime/model_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "worker/runtime/planner.h"

namespace tandem::worker {
absl::StatusOr<RunnerPlan> ModelRunner::Prepare() {
  TANDEM_ASSIGN_OR_RETURN(RunnerPlan plan, MakePlan(model_, options_));
  TANDEM_ASSIGN_OR_RETURN(activations_, model_.backend().Allocate(plan.activation_bytes));
  return plan;
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
  limits_ = LimitsFor(spec, options_, num_blocks);
  kernels::Backend& backend = model_.backend();
  TANDEM_ASSIGN_OR_RETURN(KvCache kv,
                          KvCache::Create(spec, model_.plan(), options_, num_blocks, backend));
  TANDEM_ASSIGN_OR_RETURN(StepBuffers buffers, StepBuffers::Create(limits_, backend));
  kv_.emplace(std::move(kv));
  buffers_.emplace(std::move(buffers));
  epoch_ = epoch;
  return UsesGraphs(backend, options_) ? CaptureGraphs() : absl::OkStatus();
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
