// RankTimes: what each rank's worker spent on its steps, by part, as it says itself.
//
// Thread-safe; Add is for one thread at a time, and neither locks nor allocates.
#ifndef TANDEM_COORDINATOR_CLUSTER_RANK_TIMES_H_
#define TANDEM_COORDINATOR_CLUSTER_RANK_TIMES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/step/result.h"

namespace tandem::coordinator {

class RankTimes {
 public:
  static constexpr const char* kParts[] = {"receive", "encode", "submit", "wait"};
  using Micros = std::array<int64_t, std::size(kParts)>;  // by part, summed over steps

  explicit RankTimes(size_t num_ranks) : ranks_(num_ranks) {}

  void Add(size_t rank, const step::StepTimings& step) {
    const uint32_t parts[] = {step.receive_us, step.encode_us, step.submit_us, step.wait_us};
    for (size_t part = 0; part < std::size(kParts); ++part) {
      std::atomic<int64_t>& sum = ranks_[rank][part];
      sum.store(sum.load(std::memory_order_relaxed) + parts[part], std::memory_order_relaxed);
    }
  }

  // By rank.
  std::vector<Micros> Get() const {
    std::vector<Micros> sums(ranks_.size());
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (size_t part = 0; part < std::size(kParts); ++part) {
        sums[rank][part] = ranks_[rank][part].load(std::memory_order_relaxed);
      }
    }
    return sums;
  }

 private:
  std::vector<std::array<std::atomic<int64_t>, std::size(kParts)>> ranks_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_RANK_TIMES_H_
