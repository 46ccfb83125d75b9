#include "coordinator/observe/measured_engine.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tandem::coordinator {
namespace {

RequestMetrics::End EndOf(const StreamUpdate& update) {
  if (!update.status.ok()) return RequestMetrics::kError;
  switch (update.reason) {
    case FinishReason::kLength:
      return RequestMetrics::kLength;
    case FinishReason::kCancelled:
      return RequestMetrics::kAbort;
    default:
      return RequestMetrics::kStop;
  }
}

// Measures one request's updates, and passes them on.
class MeasuredStream final : public TokenStream {
 public:
  MeasuredStream(std::shared_ptr<TokenStream> stream, RequestMetrics& metrics, const Clock& clock)
      : stream_(std::move(stream)), metrics_(metrics), clock_(clock), arrival_(clock.Now()) {}

  Taken OnUpdate(StreamUpdate update) override {
    if (ended_) return stream_->OnUpdate(std::move(update));  // late tokens
    const TimePoint now = clock_.Now();
    const StreamUpdate facts = {.reason = update.reason,
                                .status = update.status,
                                .usage = update.usage,
                                .scheduled_at = update.scheduled_at};
    const size_t num_drawn = update.tokens.size();
    const Taken taken = stream_->OnUpdate(std::move(update));
    if (num_drawn > 0) TakeTokens(facts, num_drawn - taken.num_dropped, now);
    if (!taken.stopped && !facts.last()) return taken;
    // Its prompt was all that it asked for.
    const bool drew_nothing = first_ == TimePoint{} && facts.reason == FinishReason::kLength;
    if (drew_nothing) TakePrompt(facts, now);
    RequestMetrics::End end = drew_nothing ? RequestMetrics::kPrompt : EndOf(facts);
    if (taken.stopped) end = RequestMetrics::kStop;
    End(end, now);
    return taken;
  }
  void Flush() override { stream_->Flush(); }

 private:
  void TakePrompt(const StreamUpdate& update, TimePoint now) {
    metrics_.prompt_tokens.fetch_add(update.usage.prompt_tokens, std::memory_order_relaxed);
    metrics_.queue_time.Record(std::max<Duration>(update.scheduled_at - arrival_, {}));
    metrics_.prefill_time.Record(now - std::max(update.scheduled_at, arrival_));
  }

  void TakeTokens(const StreamUpdate& update, uint64_t num_tokens, TimePoint now) {
    metrics_.generation_tokens.fetch_add(static_cast<int64_t>(num_tokens),
                                         std::memory_order_relaxed);
    uint64_t num_gaps = num_tokens;
    if (first_ == TimePoint{}) {
      TakePrompt(update, now);
      metrics_.time_to_first_token.Record(now - arrival_);
      first_ = last_ = now;
      num_gaps = num_tokens - 1;
    }
    // Tokens that come together share the time since those before.
    if (num_gaps > 0) {
      metrics_.inter_token_latency.Record((now - last_) / static_cast<int64_t>(num_gaps), num_gaps);
    }
    last_ = now;
  }

  void End(RequestMetrics::End end, TimePoint now) {
    ended_ = true;
    metrics_.ended[end].fetch_add(1, std::memory_order_relaxed);
    if (end != RequestMetrics::kStop && end != RequestMetrics::kLength) return;
    metrics_.e2e_latency.Record(now - arrival_);
    if (first_ != TimePoint{}) metrics_.decode_time.Record(last_ - first_);
  }

  const std::shared_ptr<TokenStream> stream_;
  RequestMetrics& metrics_;
  const Clock& clock_;
  const TimePoint arrival_;
  TimePoint first_{}, last_{};  // tokens; none yet
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::vector<RequestHandle>> MeasuredEngine::AddAll(std::vector<Request> requests) {
  for (Request& request : requests) {
    request.arrived_at = clock_.Now();
    request.stream = std::make_shared<MeasuredStream>(std::move(request.stream), metrics_, clock_);
  }
  return engine_.AddAll(std::move(requests));
}

}  // namespace tandem::coordinator
