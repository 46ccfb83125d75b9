// RankProgress: how far a rank's worker is on its way to its first step. Plain data.
#ifndef TANDEM_COORDINATOR_CLUSTER_RANK_PROGRESS_H_
#define TANDEM_COORDINATOR_CLUSTER_RANK_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tandem::coordinator {

struct RankProgress {
  enum class Stage { kMissing, kConnected, kLoading, kReady };

  Stage stage = Stage::kMissing;
  uint64_t done_bytes = 0;  // of the weights, while it loads
  uint64_t total_bytes = 0;
  bool operator==(const RankProgress&) const = default;
};

// Called on the thread that brings workers up; again with the same value if nothing has changed.
using RankProgressFn = std::function<void(size_t rank, const RankProgress& progress)>;

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_RANK_PROGRESS_H_
