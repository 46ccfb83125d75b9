// RankTimes: what each rank's worker spent on its steps, by part, as it says itself.
//
// Thread-safe; Add is for one thread at a time, and neither locks nor allocates.
#ifndef TANDEM_COORDINATOR_CLUSTER_RANK_TIMES_H_
#define TANDEM_COORDINATOR_CLUSTER_RANK_TIMES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/step/result.h"

namespace tandem::coordinator {

class RankTimes {
 public:
  static constexpr const char* kParts[] = {"receive", "encode", "submit", "wait"};
  // Microseconds, summed over steps.
  struct Sums {
    std::array<int64_t, std::size(kParts)> parts{};
    std::optional<int64_t> collectives{};  // of the parts' time; none if no step measured it
  };

  explicit RankTimes(size_t num_ranks) : ranks_(num_ranks) {}

  void Add(size_t rank, const step::StepTimings& step) {
    const uint32_t parts[] = {step.receive_us, step.encode_us, step.submit_us, step.wait_us};
    for (size_t part = 0; part < std::size(kParts); ++part) {
      AddTo(ranks_[rank].parts[part], parts[part]);
    }
    if (step.collective_us == step::StepTimings::kNotMeasured) return;
    AddTo(ranks_[rank].collectives, step.collective_us);
    ranks_[rank].has_collectives.store(true, std::memory_order_relaxed);
  }

  // By rank.
  std::vector<Sums> Get() const {
    std::vector<Sums> sums(ranks_.size());
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (size_t part = 0; part < std::size(kParts); ++part) {
        sums[rank].parts[part] = ranks_[rank].parts[part].load(std::memory_order_relaxed);
      }
      if (!ranks_[rank].has_collectives.load(std::memory_order_relaxed)) continue;
      sums[rank].collectives = ranks_[rank].collectives.load(std::memory_order_relaxed);
    }
    return sums;
  }

 private:
  using Sum = std::atomic<int64_t>;
  struct Rank {
    std::array<Sum, std::size(kParts)> parts{};
    Sum collectives{0};
    std::atomic<bool> has_collectives{false};
  };

  static void AddTo(Sum& sum, uint32_t micros) {
    sum.store(sum.load(std::memory_order_relaxed) + micros, std::memory_order_relaxed);
  }

  std::vector<Rank> ranks_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_RANK_TIMES_H_
