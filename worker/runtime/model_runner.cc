#include "worker/runtime/model_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/model/draft_model.h"
#include "common/step/result.h"
#include "kernels/ops/not_finite.h"
#include "worker/runtime/planner.h"

namespace tandem::worker {

namespace {

uint32_t Micros(Duration time) {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

static_assert(kernels::kNotFinite == step::kNotFinite);

ModelRunner::ModelRunner(LoadedModel& model, const RunnerOptions& options)
    : model_(model), encoder_(model.decoder(), model.spec(), model.plan()), options_(options) {
  if (const LoadedModel* const draft = model.draft()) {
    draft_encoder_.emplace(draft->decoder(), draft->spec(), draft->plan());
  } else if (const DraftHead* const head = model.draft_head()) {
    TANDEM_CHECK(model.activation_type() == tensor::Type::kF32) << "draft_states.h";
    head_encoder_.emplace(*head, encoder_, model.spec().hidden_size);
  }
}

absl::StatusOr<RunnerPlan> ModelRunner::Prepare() {
  TANDEM_ASSIGN_OR_RETURN(RunnerPlan plan, MakePlan(model_, options_));
  TANDEM_ASSIGN_OR_RETURN(activations_, model_.backend().Allocate(plan.activation_bytes));
  if (options_.poison) {
    model_.backend().PoisonBetweenSteps({activations_.data(), activations_.bytes()});
  }
  return plan;
}

absl::Status ModelRunner::Start(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                                std::unique_ptr<Communicator> comm) {
  // Releases the previous epoch's memory first. The communicator is kept even on failure: another
  // thread may hold it, to abort it.
  graphs_.reset();
  slots_.clear();
  next_slot_ = 0;
  kv_.reset();
  draft_kv_.reset();
  states_.reset();
  device_tables_.reset();
  failed_step_ = {};
  comm_ = std::move(comm);
  const model::ModelSpec& spec = model_.spec();
  if (num_blocks.size() != spec.kv_groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "start names ", num_blocks.size(), " KV groups, the model has ", spec.kv_groups.size()));
  }
  limits_ = LimitsFor(spec, options_, num_blocks);
  const LoadedModel* const draft = model_.draft();
  const size_t full_group = model::FullAttentionGroup(spec);
  limits_.workers_guess = HasGuesser();
  kernels::Backend& backend = model_.backend();
  TANDEM_ASSIGN_OR_RETURN(KvCache kv,
                          KvCache::Create(spec, model_.plan(), options_, num_blocks, backend));
  kv_.emplace(std::move(kv));
  if (draft != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(
        KvCache draft_kv,
        KvCache::Create(draft->spec(), draft->plan(), options_, {num_blocks[full_group]}, backend));
    draft_kv_.emplace(std::move(draft_kv));
  }
  TANDEM_ASSIGN_OR_RETURN(
      RecurrentStates states,
      RecurrentStates::Create(spec, model_.plan(), limits_.NumStates(), backend));
  states_.emplace(std::move(states));
  tables_ = step::BlockTables(limits_);
  TANDEM_ASSIGN_OR_RETURN(DeviceTables tables, DeviceTables::Create(limits_, backend));
  device_tables_.emplace(std::move(tables));
  epoch_ = epoch;
  const bool uses_graphs = !options_.config.device.enforce_eager && backend.graphs() != nullptr;
  slots_.reserve(max_in_flight());
  for (uint32_t i = 0; i < max_in_flight(); ++i) {
    const StepBuffers* const first = slots_.empty() ? nullptr : &slots_.front().buffers;
    TANDEM_ASSIGN_OR_RETURN(StepBuffers buffers, StepBuffers::Create(limits_, backend, first));
    StepSlot slot(std::move(buffers));
    if (HasGuesser()) {
      const DraftBuffers* const shared = slots_.empty() ? nullptr : &*slots_.front().draft;
      const DraftBuffersOptions of_guesser{.group = full_group,
                                           .own_group = draft != nullptr ? 0 : full_group,
                                           .reads_states = draft == nullptr};
      TANDEM_ASSIGN_OR_RETURN(DraftBuffers of_slot,
                              DraftBuffers::Create(limits_, of_guesser, backend, shared));
      slot.draft.emplace(std::move(of_slot));
    }
    slots_.push_back(std::move(slot));
  }
  return uses_graphs ? CaptureGraphs() : absl::OkStatus();
}

absl::StatusOr<step::StepResult> ModelRunner::Run(step::StepDescriptor step, Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(const StepTicket ticket, Begin(std::move(step), deadline));
  return Finish(ticket);
}

absl::StatusOr<StepTicket> ModelRunner::Begin(step::StepDescriptor step, Deadline deadline) {
  TANDEM_CHECK(!slots_.empty()) << "Begin before Start";
  if (step.epoch != epoch_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step of epoch ", step.epoch.value, " for a worker of epoch ", epoch_.value));
  }
  TANDEM_RETURN_IF_ERROR(AfterFailure(step.step_id));
  TANDEM_RETURN_IF_ERROR(step::Validate(step, limits_, tables_));
  StepSlot& slot = slots_[next_slot_];
  TANDEM_CHECK(!slot.in_flight) << slots_.size() << " steps are in flight already";
  tables_.Apply(step);
  slot.step = std::move(step);
  slot.timings = {};
  slot.after_failure = false;
  slot.collectives_before = CollectiveTime();

  kernels::Backend& backend = model_.backend();
  const int64_t begin = NowMicros();
  StepGuard guard;
  Encode(slot);
  const int64_t encoded = NowMicros();
  const absl::StatusOr<kernels::Ticket> submission = backend.Submit(deadline);
  if (!submission.ok()) {
    NoteFailure(slot.step.step_id);
    return submission.status();
  }
  slot.submission = *submission;
  slot.submitted_at_us = NowMicros();
  slot.timings.encode_us = static_cast<uint32_t>(encoded - begin);
  slot.timings.submit_us = static_cast<uint32_t>(slot.submitted_at_us - encoded);
  slot.violation = NoteViolation(guard.Check());
  slot.in_flight = true;
  const StepTicket ticket{.slot = next_slot_};
  next_slot_ = (next_slot_ + 1) % slots_.size();
  return ticket;
}

uint32_t ModelRunner::max_in_flight() const {
  return std::min(step::kPipelineDepth, model_.backend().max_in_flight());
}

bool ModelRunner::Done(StepTicket ticket) {
  return model_.backend().Done(slots_.at(ticket.slot).submission);
}

absl::StatusOr<step::StepResult> ModelRunner::Finish(StepTicket ticket) {
  StepSlot& slot = slots_.at(ticket.slot);
  TANDEM_CHECK(slot.in_flight) << "slot " << ticket.slot << " has no step";
  TANDEM_RETURN_IF_ERROR(Wait(slot));
  // The device began with it when it had finished the one before.
  const int64_t begin = std::max(slot.submitted_at_us, std::exchange(finished_at_us_, NowMicros()));
  slot.timings.wait_us = static_cast<uint32_t>(finished_at_us_ - begin);
  if (const auto collectives = CollectiveTime(); collectives.has_value()) {
    slot.timings.collective_us = Micros(*collectives - slot.collectives_before.value());
  }
  step::StepResult result;
  result.step_id = slot.step.step_id;
  result.timings = slot.timings;
  if (model_.plan().rank == 0) {
    result.rows = CollectRows(slot);
    const std::span<const double> pooled = slot.buffers.Pooled();
    result.pooled.assign(pooled.begin(), pooled.end());
    if (slot.guesses()) result.guesses = slot.draft->Guesses();
  }
  return result;
}

absl::Status ModelRunner::NoteViolation(const absl::Status& violation) {
  if (violation.ok() || options_.config.device.strict) return violation;
  if (!violation_logged_) {
    TANDEM_LOG(kWarning) << violation.message() << "; this is logged once";
    violation_logged_ = true;
  }
  return absl::OkStatus();
}

absl::Status ModelRunner::AfterFailure(StepId step) const {
  if (failed_step_ == StepId{}) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("step ", step.value, " after step ", failed_step_.value,
                   ", which failed: the epoch's pages and block tables are not known any more"));
}

std::optional<Duration> ModelRunner::CollectiveTime() const {
  return comm_ == nullptr ? std::nullopt : comm_->TimeSpent();
}

void ModelRunner::NoteFailure(StepId step) {
  if (failed_step_ == StepId{}) failed_step_ = step;
}

absl::Status ModelRunner::Wait(StepSlot& slot) {
  slot.in_flight = false;
  absl::Status done = model_.backend().Wait(slot.submission);
  if (slot.after_failure) return AfterFailure(slot.step.step_id);
  if (done.ok()) done = slot.violation;
  if (done.ok()) return done;
  NoteFailure(slot.step.step_id);
  for (StepSlot& later : slots_) later.after_failure = later.in_flight;
  return done;
}

absl::Status ModelRunner::CaptureGraphs() {
  StepSlot& slot = slots_.front();
  TANDEM_ASSIGN_OR_RETURN(
      DecodeGraphs graphs,
      DecodeGraphs::Capture(limits_, *device_tables_, slot.buffers, model_.backend(),
                            [&](const Batch& batch, const HeadBatch& head) {
                              EncodeCompute(batch, head, nullptr, slot);
                            }));
  graphs_.emplace(std::move(graphs));
  return absl::OkStatus();
}

void ModelRunner::Encode(StepSlot& slot) {
  kernels::Backend& backend = model_.backend();
  const step::StepDescriptor* padded = graphs_.has_value() ? graphs_->Pad(slot.step) : nullptr;
  const StepBuffers::Staged staged =
      slot.buffers.Stage(padded != nullptr ? *padded : slot.step, *device_tables_);
  DraftBuffers::Staged draft;
  if (slot.guesses()) draft = slot.draft->Stage(slot.step, staged);
  backend.BeginEncode(kernels::EncodeMode::kRun);
  slot.buffers.Upload(backend);
  if (slot.guesses()) slot.draft->Upload(backend);
  backend.Encode(staged.table_update);
  if (staged.token_update.num_runs > 0) backend.Encode(staged.token_update);
  if (slot.guesses()) EncodeDrafts(draft);
  if (padded != nullptr) {
    graphs_->EncodeReplay(staged, backend);
  } else {
    EncodeCompute(staged.batch, staged.head, &slot.step, slot);
  }
  if (slot.guesses()) {
    EncodePass(draft.whole);
    if (draft.keep_states.num_runs > 0) backend.Encode(draft.keep_states);
  }
  if (staged.head.num_samples + staged.head.num_logprobs + staged.head.num_pools > 0) {
    slot.buffers.DownloadResults(/*all=*/model_.plan().rank == 0, backend);
  }
  if (slot.guesses() && model_.plan().rank == 0) slot.draft->Download(backend);
}

void ModelRunner::EncodeDrafts(const DraftBuffers::Staged& staged) {
  for (const DraftPass& pass : staged.passes) EncodePass(pass);
  if (staged.token_update.num_runs > 0) model_.backend().Encode(staged.token_update);
}

void ModelRunner::EncodePass(const DraftPass& pass) {
  Arena arena(model_.activation_type(), activations_.data(), activations_.bytes());
  LayerContext context{.backend = model_.backend(), .comm = comm_.get(), .arena = arena};
  if (head_encoder_.has_value()) return head_encoder_->Encode(context, pass, kv_->pages());
  draft_encoder_->Encode(context, pass.batch, pass.head, draft_kv_->pages(),
                         std::vector<LayerStates>(model_.draft()->spec().num_layers),
                         {.sampled = pass.guesses});
}

void ModelRunner::EncodeCompute(const Batch& batch, const HeadBatch& head,
                                const step::StepDescriptor* step, StepSlot& slot) {
  StepBuffers& buffers = slot.buffers;
  Arena arena(model_.activation_type(), activations_.data(), activations_.bytes());
  LayerContext context{.backend = model_.backend(), .comm = comm_.get(), .arena = arena};
  encoder_.Encode(context, batch, head, kv_->pages(), states_->layers(),
                  {.sampled = buffers.sampled(),
                   .logprobs = buffers.logprobs(),
                   .pooled = buffers.pooled(),
                   .states = slot.draft.has_value() ? slot.draft->model_states() : nullptr,
                   .on_logits = [&](const HeadSlice& slice, const float* logits) {
                     if (step != nullptr) EncodeLogits(*step, slice, logits, buffers);
                   }});
}

void ModelRunner::EncodeLogits(const step::StepDescriptor& step, const HeadSlice& slice,
                               const float* logits, StepBuffers& buffers) {
  const auto wanted = [&](uint32_t i) {
    return (step.rows[slice.first_row + i].wants & step::kWantLogits) != 0;
  };
  const size_t vocab = model_.spec().vocab_size;
  for (uint32_t begin = 0, end = 0; begin < slice.num_rows; begin = end + 1) {
    // One copy for adjacent rows.
    for (end = begin; end < slice.num_rows && wanted(end);) ++end;
    if (end == begin) continue;
    buffers.DownloadLogits(logits + begin * vocab, (end - begin) * vocab, model_.backend());
  }
}

std::vector<step::RowResult> ModelRunner::CollectRows(const StepSlot& slot) const {
  const size_t vocab = model_.spec().vocab_size;
  const float* next_logits = slot.buffers.host_logits();
  size_t next_sample = 0, next_logprob = 0;
  std::vector<step::RowResult> rows;
  rows.reserve(slot.step.rows.size());
  for (const step::RowRequest& wanted : slot.step.rows) {
    step::RowResult& out = rows.emplace_back();
    if ((wanted.wants & step::kWantSample) != 0) {
      out.tokens = {slot.buffers.host_sampled()[next_sample++]};
    }
    for (uint32_t i = 0; i < step::NumLogprobs(wanted); ++i) {
      out.logprobs.push_back(slot.buffers.Logprob(next_logprob++));
    }
    if ((wanted.wants & step::kWantLogits) == 0) continue;
    out.logits.assign(next_logits, next_logits + vocab);
    next_logits += vocab;
  }
  return rows;
}

}  // namespace tandem::worker
