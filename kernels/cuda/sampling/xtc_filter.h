// Filters of Sample that drop ids from the middle or the top of a row's candidates: typical_p and
// XTC. They set weights to zero. A block works on one row; all of its threads call them.
//
// Candidates whose key (device/select_key.h) is below `least` count as dropped already. Sums are in
// double, in one order.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_WEIGHT_FILTERS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_WEIGHT_FILTERS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select.h"
#include "kernels/cuda/sampling/candidates.h"

namespace tandem::kernels::cuda {

template <uint32_t kThreads>
class WeightFilters {
 public:
  // `keys` has kBlockReduceRoom values.
  __device__ WeightFilters(const Candidates& candidates, uint64_t least, const SelectRoom& room,
                           SharedArray<uint64_t> keys)
      : candidates_(candidates), least_(least), room_(room), keys_(keys) {}

  // Keeps the fewest ids whose share of the weight reaches `share`, those first whose ln(weight) is
  // closest to its mean, then lower ids. The farthest distance that is kept, and among equal ones
  // the last id, are found by bisection: at most 31 + 20 passes.
  __device__ void KeepTypical(float share) {
    double sum = 0, moment = 0;
    ForEachKept([&](uint32_t, float weight) {
      sum += weight;
      moment += double{weight} * LogOfWeight(weight);
    });
    sum = BlockSum(sum, room_.doubles);
    mean_ = static_cast<float>(BlockSum(moment, room_.doubles) / sum);
    const double target = share * sum;
    const uint32_t farthest = Lowest(kInfinityBits, [&](uint32_t bound) {
      return Sum([&](uint32_t, uint32_t distance) { return distance <= bound; }) >= target;
    });
    const double before = Sum([&](uint32_t, uint32_t distance) { return distance < farthest; });
    const uint32_t last = Lowest(candidates_.size() - 1, [&](uint32_t bound) {
      return before + Sum([&](uint32_t id, uint32_t distance) {
               return distance == farthest && id <= bound;
             }) >=
             target;
    });
    Keep([&](uint32_t id, float weight) {
      const uint32_t distance = Distance(weight);
      return distance < farthest || (distance == farthest && id <= last);
    });
  }

  // Of the ids with a share of at least `threshold` keeps only the lightest, the last one of
  // equals.
  __device__ void DropTopChoices(float threshold) {
    double sum = 0;
    ForEachKept([&](uint32_t, float weight) { sum += weight; });
    const double least = threshold * BlockSum(sum, room_.doubles);
    uint64_t last = 0;  // inverted: the largest is of the lightest
    ForEachKept([&](uint32_t id, float weight) {
      const uint64_t inverted = ~SelectKey(__float_as_uint(weight), id);
      if (weight >= least && inverted > last) last = inverted;
    });
    last = BlockMax(last, keys_);
    Keep([&](uint32_t id, float weight) {
      return last == 0 || SelectKey(__float_as_uint(weight), id) <= ~last;
    });
  }

 private:
  static constexpr uint32_t kInfinityBits = 0x7f800000u;

  template <typename F>
  __device__ void ForEachKept(F f) const {
    ForEach<kThreads>(candidates_, candidates_.size(), [&](uint32_t id, float weight) {
      if (weight > 0 && SelectKey(__float_as_uint(weight), id) >= least_) f(id, weight);
    });
  }

  // As bits, which order as distances do.
  __device__ uint32_t Distance(float weight) const {
    return __float_as_uint(fabsf(__fadd_rn(LogOfWeight(weight), -mean_)));
  }

  // Of the weights of ids whose (id, distance) are taken.
  template <typename Takes>
  __device__ double Sum(Takes takes) const {
    double sum = 0;
    ForEachKept([&](uint32_t id, float weight) {
      if (takes(id, Distance(weight))) sum += weight;
    });
    return BlockSum(sum, room_.doubles);
  }

  // The lowest bound up to `most` that is enough; `most` if none is.
  template <typename IsEnough>
  __device__ static uint32_t Lowest(uint32_t most, IsEnough is_enough) {
    uint32_t low = 0, high = most;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (is_enough(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // Every thread reads and writes its own candidates.
  template <typename Keeps>
  __device__ void Keep(Keeps keeps) const {
    ForEachKept([&](uint32_t id, float weight) {
      if (!keeps(id, weight)) candidates_.Drop(id);
    });
    __syncthreads();
  }

  const Candidates candidates_;
  const uint64_t least_;
  const SelectRoom room_;
  const SharedArray<uint64_t> keys_;
  float mean_ = 0;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_WEIGHT_FILTERS_H_
