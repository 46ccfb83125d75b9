// RefusalCounts: calls of the public services that ended before a request of theirs reached the
// engine, by why. What is refused waits nowhere and has no latency: only these numbers show it.
//
// Thread-safe; nothing locks.
#ifndef TANDEM_COORDINATOR_OBSERVE_REFUSAL_COUNTS_H_
#define TANDEM_COORDINATOR_OBSERVE_REFUSAL_COUNTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/status/status.h"
#include "common/base/metric.h"

namespace tandem::coordinator {

class RefusalCounts {
 public:
  enum Reason {
    kQueueFull,        // of the engine, by requests or by tokens
    kTokenizerFull,    // its queue, or the memory for texts that wait for it
    kRateLimit,        // of the call's token
    kUnauthenticated,  // no token that is known and may do this
    kUnavailable,      // the server loads, drains or is broken
    kTooLate,          // the deadline passed before the text was read
    kInvalid,          // anything that another try does not change
  };
  static constexpr const char* kNames[] = {"queue_full",      "tokenizer_full", "rate_limit",
                                           "unauthenticated", "unavailable",    "too_late",
                                           "invalid"};

  // A call ends with `code`; RESOURCE_EXHAUSTED means `exhausted`. CANCELLED is not counted: its
  // client has gone.
  void Add(absl::StatusCode code, Reason exhausted);
  int64_t Get(Reason reason) const { return counts_[reason].load(std::memory_order_relaxed); }

  // visit(int64_t value, const Metric&, const char* label, const char* label_value).
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t reason = 0; reason < counts_.size(); ++reason) {
      visit(counts_[reason].load(std::memory_order_relaxed),
            Metric{"tandem_requests_refused_total", Metric::Kind::kCounter,
                   "calls that were refused before the engine had them, by why"},
            "reason", kNames[reason]);
    }
  }

 private:
  std::array<std::atomic<int64_t>, std::size(kNames)> counts_{};  // by Reason
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_REFUSAL_COUNTS_H_
