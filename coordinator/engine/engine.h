// Engine: the loop that turns requests into steps. One thread owns scheduler, KV cache and workers;
// all events arrive through a bounded inbox: drain inbox -> schedule -> build -> submit -> collect
// -> apply.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/metric.h"
#include "coordinator/engine/request.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/scheduler/scheduler_stats.h"

namespace tandem::coordinator {

struct EngineStats : KvCacheStats, SchedulerStats {
  int64_t steps = 0;
  int64_t epoch = 0;
  int64_t not_finite = 0;
  int64_t surplus_tokens = 0;
  int64_t restarts = 0;
  int64_t last_pause_ms = 0;
  int64_t expired = 0;
  int64_t unguessed_steps = 0;

  // All of them, each with its name and meaning: visit(int64_t value, const Metric&).
  template <typename Visit>
  void ForEach(Visit visit) const {
    KvCacheStats::ForEach(visit);
    SchedulerStats::ForEach(visit);
    visit(steps, Metric{"tandem_steps_total", Metric::Kind::kCounter, "steps computed"});
    visit(epoch, Metric{"tandem_epoch", Metric::Kind::kGauge, "the workers' epoch"});
    visit(not_finite, Metric{"tandem_requests_not_finite_total", Metric::Kind::kCounter,
                             "requests ended because their logits were not finite"});
    visit(surplus_tokens, Metric{"tandem_surplus_tokens_total", Metric::Kind::kCounter,
                                 "tokens computed for requests that had ended one step before"});
    visit(restarts, Metric{"tandem_restarts_total", Metric::Kind::kCounter,
                           "times that lost workers were replaced and requests continued"});
    visit(last_pause_ms, Metric{"tandem_last_pause_milliseconds", Metric::Kind::kGauge,
                                "from noticing the last loss of a worker to the next step"});
    visit(expired, Metric{"tandem_requests_expired_total", Metric::Kind::kCounter,
                          "requests ended because their deadline had passed"});
    visit(
        unguessed_steps,
        Metric{
            "tandem_spec_decode_skipped_steps_total", Metric::Kind::kCounter,
            "steps that the draft model or head skipped: none of their requests was guessed for"});
  }
};

// The engine's interface to the API. Thread-safe.
class EngineHandle {
 public:
  virtual ~EngineHandle() = default;
  // Queues requests of one call, all or none of them; at least one. INVALID_ARGUMENT, with both
  // numbers, for what can never fit (length, blocks, number of requests); ALREADY_EXISTS for an id
  // in flight, which is free again when its stream's last Flush is called; RESOURCE_EXHAUSTED when
  // the queue is full; UNAVAILABLE while shutting down or after a worker was lost.
  virtual absl::StatusOr<std::vector<RequestHandle>> AddAll(std::vector<Request> requests) = 0;
  // The same for one.
  absl::StatusOr<RequestHandle> Add(Request request) {
    std::vector<Request> one;
    one.push_back(std::move(request));
    absl::StatusOr<std::vector<RequestHandle>> handles = AddAll(std::move(one));
    if (!handles.ok()) return handles.status();
    return handles->front();
  }
  // Ends a request; its blocks are free after the step in flight. No effect if it is already over,
  // even if another request has its id now.
  virtual void Cancel(RequestHandle handle) = 0;
  // Requests added from now on hit no prefix that was computed, or begun, before. UNAVAILABLE while
  // shutting down or after a worker was lost for good.
  virtual absl::Status ResetPrefixCache() = 0;
  virtual EngineStats Stats() const = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_H_
