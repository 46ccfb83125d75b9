// RankClocks: what to add to a rank's clock for the time of the recording. A rank on the
// coordinator's host has the same monotonic clock; of another one the difference is estimated.
//
// A rank gets no step before the coordinator begins to send it, and has done it when the
// coordinator takes its answer: each step gives a lower and an upper bound, and the best of many
// are close to each other. If they allow the clocks to be the same, they are taken to be.
#ifndef TANDEM_CLIENT_TRACE_RANK_CLOCKS_H_
#define TANDEM_CLIENT_TRACE_RANK_CLOCKS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace tandem::client {

class RankClocks {
 public:
  // A rank's process, which a later epoch may replace.
  struct Rank {
    uint32_t rank = 0;
    uint64_t epoch = 0;
    auto operator<=>(const Rank&) const = default;
  };
  struct Offset {
    int64_t ns = 0;
    int64_t error_ns = 0;  // it is within so much of `ns`; 0: the clocks are the same
  };

  // One step: when the coordinator began to send it and had its answer, and when the rank had it
  // and had done it; the rank's times as if its clock were the coordinator's.
  void Add(Rank rank, int64_t sent_ns, int64_t answered_ns, int64_t received_ns, int64_t done_ns);
  // Of a rank that was added.
  Offset Of(Rank rank) const;

 private:
  struct Bounds {
    int64_t least_ns = std::numeric_limits<int64_t>::min();
    int64_t most_ns = std::numeric_limits<int64_t>::max();
  };

  std::map<Rank, Bounds> bounds_;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_TRACE_RANK_CLOCKS_H_
