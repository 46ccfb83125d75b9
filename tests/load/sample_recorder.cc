#include "tests/load/sample_recorder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tandem::load {

SampleRecorder::SampleRecorder(RecordedRun& run, const LoadRequest& request, double intended_s)
    : run_(run), request_(request) {
  sample_.intended_s = intended_s;
  sample_.sent_s = run.Now();
  sample_.prompt_tokens = request.prompt_tokens;
  sample_.slow_reader = request.slow_reader;
  sample_.arrivals.reserve(request.output_tokens);
}

Next SampleRecorder::OnTokens(uint32_t num_tokens) {
  sample_.arrivals.push_back({run_.Now(), num_tokens});
  sample_.output_tokens += num_tokens;
  run_.OnRequestTokens(num_tokens);
  if (sample_.arrivals.size() == request_.cancel_after_messages) {
    cancelled_ = true;
    return Next::kCancel;
  }
  return request_.slow_reader ? Next::kReadLater : Next::kRead;
}

void SampleRecorder::OnEnd(const absl::Status& status, const ServerUsage& usage) {
  sample_.end_s = run_.Now();
  if (usage.prompt_tokens > 0) sample_.prompt_tokens = usage.prompt_tokens;
  if (usage.completion_tokens > 0) sample_.output_tokens = usage.completion_tokens;
  sample_.outcome = Judge(status);
  if (sample_.outcome == Outcome::kFailed) {
    sample_.error = status.ok() ? "the answer has no token" : std::string(status.message());
  }
  run_.OnRequestEnd(cancelled_ ? absl::OkStatus() : status);
}

Outcome SampleRecorder::Judge(const absl::Status& status) const {
  if (cancelled_) return Outcome::kCancelled;
  if (status.ok() && !sample_.arrivals.empty()) return Outcome::kCompleted;
  // Only the end of the run cancels others.
  return absl::IsCancelled(status) ? Outcome::kCut : Outcome::kFailed;
}

void CollectSamples(std::deque<SampleRecorder>& recorders, size_t num_requests, RunRecord& record) {
  record.not_sent = num_requests - recorders.size();
  for (SampleRecorder& recorder : recorders) {
    record.duration_s = std::max(record.duration_s, recorder.sample().end_s);
    record.samples.push_back(std::move(recorder.sample()));
  }
}

}  // namespace tandem::load
