// CollectiveTag, for the check that all ranks make the same collective, and errors shared by
// communicators.
#ifndef TANDEM_WORKER_COMM_COLLECTIVE_H_
#define TANDEM_WORKER_COMM_COLLECTIVE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tandem::worker {

enum class CollectiveKind : uint32_t { kJoin, kAllReduce, kGather, kAllGather, kBroadcast };

// Plain data, also in shared memory, so any value of `kind` may be read.
struct CollectiveTag {
  CollectiveKind kind = CollectiveKind::kJoin;
  uint32_t root = 0;   // of kinds that have one, else 0
  uint64_t bytes = 0;  // that each rank contributes
  bool operator==(const CollectiveTag&) const = default;
};

// "gather of 4096 bytes to rank 0".
std::string ToString(const CollectiveTag& tag);

// INTERNAL: `rank` and `others` make different collectives.
absl::Status TagMismatch(int rank, const CollectiveTag& tag, const std::string& others,
                         const CollectiveTag& theirs);
// DEADLINE_EXCEEDED naming the ranks of `list`, such as "1, 3".
absl::Status MissingRanks(const std::string& list, int size, const CollectiveTag& tag);
// The error of an abort, also if its reason is OK.
absl::Status AbortReason(const absl::Status& reason);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_COLLECTIVE_H_
