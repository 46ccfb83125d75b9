// RequestMetrics: what requests took, as their clients saw it. Each is declared once, in ForEach.
//
// Names and meanings are vLLM's, with underscores
// (https://docs.vllm.ai/en/stable/usage/metrics.html). Thread-safe; nothing locks.
#ifndef TANDEM_COORDINATOR_OBSERVE_REQUEST_METRICS_H_
#define TANDEM_COORDINATOR_OBSERVE_REQUEST_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/metric.h"
#include "coordinator/observe/histogram.h"
#include "coordinator/observe/refusal_counts.h"

namespace tandem::coordinator {

// From milliseconds to what a long answer takes.
inline constexpr double kRequestBounds[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                            0.2,   0.5,   1,     2,    5,    10,   20,
                                            50,    100,   200,   500,  1000, 2000};
inline constexpr double kTokenBounds[] = {0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015,
                                          0.02,  0.03,  0.04,  0.05,  0.075,  0.1,  0.15,
                                          0.2,   0.3,   0.5,   0.75,  1,      2.5,  5};

struct RequestMetrics {
  // kPrompt: scores and embeddings, which ask for no token.
  enum End { kStop, kLength, kPrompt, kAbort, kError };
  static constexpr const char* kEndNames[] = {"stop", "length", "prompt", "abort", "error"};

  Histogram time_to_first_token{kRequestBounds};
  Histogram inter_token_latency{kTokenBounds};
  Histogram e2e_latency{kRequestBounds};
  Histogram queue_time{kRequestBounds};
  Histogram prefill_time{kRequestBounds};
  Histogram decode_time{kRequestBounds};
  std::atomic<int64_t> prompt_tokens{0};
  std::atomic<int64_t> generation_tokens{0};
  std::array<std::atomic<int64_t>, std::size(kEndNames)> ended{};  // by End
  RefusalCounts refused;

  // visit(const Histogram&, const Metric&), visit(int64_t value, const Metric&), and for a metric
  // with a label visit(int64_t value, const Metric&, const char* label, const char* label_value).
  template <typename Visit>
  void ForEach(Visit visit) const {
    using Kind = Metric::Kind;
    visit(time_to_first_token, Metric{"tandem_time_to_first_token_seconds", Kind::kHistogram,
                                      "from a request's arrival to its first token"});
    visit(inter_token_latency, Metric{"tandem_inter_token_latency_seconds", Kind::kHistogram,
                                      "between two tokens of a request"});
    visit(e2e_latency, Metric{"tandem_e2e_request_latency_seconds", Kind::kHistogram,
                              "from a request's arrival to its last token"});
    visit(queue_time, Metric{"tandem_request_queue_time_seconds", Kind::kHistogram,
                             "from a request's arrival to its first step"});
    visit(prefill_time,
          Metric{"tandem_request_prefill_time_seconds", Kind::kHistogram,
                 "from a request's first step to its first token or, without any, its end"});
    visit(decode_time, Metric{"tandem_request_decode_time_seconds", Kind::kHistogram,
                              "from a request's first token to its last"});
    visit(prompt_tokens.load(std::memory_order_relaxed),
          Metric{"tandem_prompt_tokens_total", Kind::kCounter,
                 "prompt tokens of requests that were computed, cached ones included"});
    visit(generation_tokens.load(std::memory_order_relaxed),
          Metric{"tandem_generation_tokens_total", Kind::kCounter, "generated tokens"});
    for (size_t end = 0; end < ended.size(); ++end) {
      visit(ended[end].load(std::memory_order_relaxed),
            Metric{"tandem_request_success_total", Kind::kCounter,
                   "requests that ended, by how: stop, length, prompt (it asked for no token), "
                   "abort (cancelled), error"},
            "finished_reason", kEndNames[end]);
    }
    refused.ForEach(visit);
  }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_REQUEST_METRICS_H_
