// SchedulerStats: what runs, what waits, and what scheduling has cost so far. Plain data.
#ifndef TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_STATS_H_
#define TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_STATS_H_

#include <cstdint>

#include "common/base/metric.h"

namespace tandem::coordinator {

struct SchedulerStats {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t requests = 0;
  int64_t preemptions = 0;
  int64_t queried_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t drafts = 0;
  int64_t accepted_drafts = 0;

  template <typename Visit>
  void ForEach(Visit visit) const {
    visit(running,
          Metric{"tandem_num_requests_running", Metric::Kind::kGauge, "requests in steps"});
    visit(waiting, Metric{"tandem_num_requests_waiting", Metric::Kind::kGauge,
                          "requests that wait for room, preempted ones included"});
    visit(requests, Metric{"tandem_requests_total", Metric::Kind::kCounter, "requests taken in"});
    visit(preemptions, Metric{"tandem_preemptions_total", Metric::Kind::kCounter,
                              "requests sent back to waiting, so that others have room"});
    visit(queried_tokens, Metric{"tandem_prefix_cache_queries_total", Metric::Kind::kCounter,
                                 "tokens that were looked up in the prefix cache"});
    visit(cached_tokens, Metric{"tandem_prefix_cache_hits_total", Metric::Kind::kCounter,
                                "tokens not computed because the prefix cache had their K and V"});
    visit(drafts, Metric{"tandem_spec_decode_num_draft_tokens_total", Metric::Kind::kCounter,
                         "guessed tokens that were computed with those before them"});
    visit(accepted_drafts,
          Metric{"tandem_spec_decode_num_accepted_tokens_total", Metric::Kind::kCounter,
                 "guessed tokens that were what the model drew"});
  }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_SCHEDULER_STATS_H_
