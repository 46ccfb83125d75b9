#include "coordinator/engine/step_tracer.h"

#include <string>

namespace tandem::coordinator {
namespace {

using What = RequestChange::What;

const char* ReasonOf(const StreamUpdate& update) {
  if (!update.status.ok()) return "error";
  switch (update.reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    default:
      return "stop";
  }
}

}  // namespace

void StepTracer::Begin(uint64_t recording, const Generations& generations) {
  recording_ = recording;
  requests_.clear();
  if (recording_ == 0) return;
  const TimePoint now = Now();
  for (const auto& [handle, generation] : generations) {
    AddArrival(*generation, now);
    if (generation->state != SequenceState::kRunning) continue;
    AddChange(What::kScheduled, handle, generation->scheduled_at);
    requests_[handle].runs = true;
    if (generation->phase() != Phase::kDecode) continue;
    AddChange(What::kDecodes, handle, now);
    requests_[handle].decodes = true;
  }
}

void StepTracer::AddArrival(const Generation& generation, TimePoint now) {
  const TimePoint arrived = generation.request.arrived_at;
  requests_[generation.handle] = {};
  Add(RequestChange{.what = What::kArrived,
                    .handle = generation.handle,
                    .at = arrived == TimePoint{} ? now : arrived,
                    .request_id = generation.request.id,
                    .trace_id = generation.request.trace_id,
                    .prompt_tokens = generation.prompt_len});
}

void StepTracer::DescribeEntries(const Step& step, StepSubmitted& submitted) {
  for (const uint64_t handle : step.plan.preempted) {
    AddChange(What::kPreempted, handle, submitted.scheduled);
    if (const auto found = requests_.find(handle); found != requests_.end()) found->second = {};
  }
  for (const PlanEntry& entry : step.plan.entries) {
    const bool decodes = entry.phase == Phase::kDecode;
    (decodes ? submitted.decode_tokens : submitted.prefill_tokens) += entry.num_tokens;
    submitted.draft_tokens += entry.num_drafts;
    Followed& request = requests_[entry.sequence->handle];
    if (std::exchange(request.runs, true)) continue;
    AddChange(What::kScheduled, entry.sequence->handle, submitted.scheduled);
  }
  submitted.step = step.descriptor.step_id;
  submitted.epoch = step.descriptor.epoch;
  submitted.kind = step.descriptor.kind;
  submitted.num_sequences = static_cast<uint32_t>(step.plan.entries.size());
}

void StepTracer::AddUpdate(const Generation& generation, const StreamUpdate& update) {
  if (!update.tokens.empty() && !std::exchange(requests_[generation.handle].decodes, true)) {
    AddChange(What::kDecodes, generation.handle, Now());
  }
  if (update.last()) AddEnd(generation, ReasonOf(update));
}

void StepTracer::AddChange(What what, RequestHandle handle, TimePoint at) {
  Add(RequestChange{.what = what, .handle = handle, .at = at});
}

void StepTracer::AddEnd(const Generation& generation, const char* reason) {
  requests_.erase(generation.handle);
  const Usage usage = generation.usage();
  Add(RequestChange{.what = What::kEnded,
                    .handle = generation.handle,
                    .at = Now(),
                    .completion_tokens = usage.completion_tokens,
                    .cached_tokens = usage.cached_tokens,
                    .reason = reason});
}

void StepTracer::AddLoss(Epoch epoch, const absl::Status& reason) {
  const TimePoint now = Now();
  Add(WorkersChange{
      .at = now, .lost = true, .epoch = epoch, .reason = std::string(reason.message())});
  for (auto& [handle, request] : requests_) {
    if (std::exchange(request, {}).runs) AddChange(What::kRewound, handle, now);
  }
}

}  // namespace tandem::coordinator
