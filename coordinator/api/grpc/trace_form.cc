#include "coordinator/api/grpc/trace_form.h"

#include <chrono>

#include "common/base/utf8.h"

namespace tandem::coordinator {
namespace {

class Writer {
 public:
  Writer(TimePoint start, v1::TraceEvent& out) : start_(start), out_(out) {}

  void operator()(const StepSubmitted& step) {
    v1::StepSubmitted& out = *out_.mutable_step_submitted();
    out.set_step(step.step.value);
    out.set_epoch(step.epoch.value);
    out.set_kind(static_cast<v1::StepSubmitted::Kind>(step.kind));
    out.set_num_sequences(step.num_sequences);
    out.set_prefill_tokens(step.prefill_tokens);
    out.set_decode_tokens(step.decode_tokens);
    out.set_draft_tokens(step.draft_tokens);
    out.set_begin_ns(Since(step.begin));
    out.set_scheduled_ns(Since(step.scheduled));
    out.set_built_ns(Since(step.built));
    out.set_submitted_ns(Since(step.submitted));
  }
  void operator()(const StepSettled& step) {
    v1::StepSettled& out = *out_.mutable_step_settled();
    out.set_step(step.step.value);
    out.set_begin_ns(Since(step.begin));
    out.set_answered_ns(Since(step.answered));
    out.set_applied_ns(Since(step.applied));
    out.set_delivered_ns(Since(step.delivered));
  }
  void operator()(const RankStep& step) {
    v1::RankStep& out = *out_.mutable_rank_step();
    out.set_rank(step.rank);
    out.set_step(step.step.value);
    out.set_epoch(step.epoch.value);
    out.set_received_at_us(step.timings.received_at_us);
    out.set_receive_us(step.timings.receive_us);
    out.set_encode_us(step.timings.encode_us);
    out.set_submit_us(step.timings.submit_us);
    out.set_wait_us(step.timings.wait_us);
    if (step.timings.collective_us != step::StepTimings::kNotMeasured) {
      out.set_collective_us(step.timings.collective_us);
    }
    out.set_answered_ns(Since(step.answered));
  }
  void operator()(const RequestChange& change) {
    v1::RequestChange& out = *out_.mutable_request();
    out.set_what(static_cast<v1::RequestChange::What>(static_cast<int>(change.what) + 1));
    out.set_handle(change.handle);
    out.set_at_ns(Since(change.at));
    out.set_request_id(change.request_id);
    out.set_trace_id(change.trace_id);
    out.set_prompt_tokens(change.prompt_tokens);
    out.set_completion_tokens(change.completion_tokens);
    out.set_cached_tokens(change.cached_tokens);
    out.set_reason(change.reason);
  }
  void operator()(const WorkersChange& change) {
    v1::WorkersChange& out = *out_.mutable_workers();
    out.set_at_ns(Since(change.at));
    out.set_lost(change.lost);
    out.set_epoch(change.epoch.value);
    out.set_reason(RepairedUtf8(change.reason));  // a worker's own words may be in it
  }

 private:
  int64_t Since(TimePoint at) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at - start_).count();
  }

  const TimePoint start_;
  v1::TraceEvent& out_;
};

// Both count their values alike.
static_assert(static_cast<int>(step::StepKind::kPrefill) == v1::StepSubmitted::PREFILL &&
              static_cast<int>(step::StepKind::kDecode) == v1::StepSubmitted::DECODE &&
              static_cast<int>(step::StepKind::kMixed) == v1::StepSubmitted::MIXED);
static_assert(static_cast<int>(RequestChange::What::kArrived) + 1 == v1::RequestChange::ARRIVED &&
              static_cast<int>(RequestChange::What::kEnded) + 1 == v1::RequestChange::ENDED);

}  // namespace

void ToProto(const TraceEvent& event, TimePoint start, v1::TraceEvent& out) {
  std::visit(Writer(start, out), event);
}

}  // namespace tandem::coordinator
