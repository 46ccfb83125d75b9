// The filter typical_p of Sample: of a row's candidates it keeps the fewest whose share of the
// weight reaches a given one, those first whose ln(weight) is closest to its mean, then lower ids.
// A block works on one row; all of its threads call it.
//
// The farthest distance that is kept is found in bins: of distances times 32, then of each 1024th
// of the bin found, and so on. Multiplying by powers of two and taking away the bin's number are
// exact. A pass after the first takes logarithms only of weights that may lie in the bin. Bins hold
// sums of integers, so they do not depend on the order of threads; what they leave, a few distances
// at most, is decided by sums in double, in one order.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_TYPICAL_FILTER_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_TYPICAL_FILTER_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/scan.h"
#include "kernels/cuda/device/select.h"
#include "kernels/cuda/sampling/kept_candidates.h"
#include "kernels/cuda/sampling/weight_moments.h"

namespace tandem::kernels::cuda {

template <uint32_t kThreads>
class TypicalFilter {
 public:
  __device__ TypicalFilter(const KeptCandidates<kThreads>& kept, const SelectRoom& room)
      : kept_(kept), room_(room) {}

  // `moments`: of all candidates.
  __device__ void Keep(float share, WeightMoments moments) {
    mean_ = static_cast<float>(moments.moment / moments.sum);
    const double target = share * moments.sum;
    Narrow(target);
    const double before_range = SumOf([&](float weight) {
      return IsInside(weight) || (MayBeIn(weight) && Distance(weight) < low_);
    });
    const auto within = [&](uint32_t bound) {
      return SumOf([&](float weight) {
        const uint32_t distance = MayBeIn(weight) ? Distance(weight) : kInfinityBits;
        return distance >= low_ && distance <= bound;
      });
    };
    const uint32_t farthest =
        Lowest(low_, high_, [&](uint32_t bound) { return before_range + within(bound) >= target; });
    const double before = before_range + (farthest > low_ ? within(farthest - 1) : 0.0);
    const uint32_t last = LastOf(farthest, before, target);
    kept_.ForEach([&](uint32_t id, float weight) {
      if (IsInside(weight)) return;
      const uint32_t distance = MayBeIn(weight) ? Distance(weight) : kInfinityBits;
      if (distance > farthest || (distance == farthest && id > last)) kept_.Drop(id);
    });
    __syncthreads();
  }

 private:
  static constexpr uint32_t kInfinityBits = 0x7f800000u;
  static constexpr uint32_t kBins = 1024, kLevels = 3, kFewDistances = 8;
  static constexpr float kFirstScale = 32.0f;

  // As bits, which order as distances do.
  __device__ uint32_t Distance(float weight) const {
    return __float_as_uint(fabsf(__fadd_rn(LogOfWeight(weight), -mean_)));
  }

  // Which weights may have a distance of [nearest, most], and which certainly have a smaller one,
  // in spite of how logarithms and exponentials are rounded.
  __device__ void SetRange(float nearest, float most) {
    constexpr float kLess = 1 - 1e-4f, kMore = 1 + 1e-4f, kSmallest = 2e-38f;
    const auto weight = [&](float distance) {
      return ExpOfNegative(fminf(mean_ + distance, 0.0f));
    };
    below_[0] = weight(-most) * kLess;
    below_[1] = fmaxf(weight(-nearest) * kMore, kSmallest);
    above_[0] = weight(nearest) * kLess;
    above_[1] = fmaxf(weight(most) * kMore, kSmallest);
  }
  __device__ bool MayBeIn(float weight) const {
    return (weight >= below_[0] && weight <= below_[1]) ||
           (weight >= above_[0] && weight <= above_[1]);
  }
  __device__ bool IsInside(float weight) const { return weight > below_[1] && weight < above_[0]; }

  // Finds [low_, high_], in which the distance that reaches the target is, or the last one.
  __device__ void Narrow(double target) {
    low_ = 0;
    high_ = kInfinityBits;
    SetRange(0, INFINITY);
    float found[kLevels];
    double before = 0, nearest = 0, width = 1 / kFirstScale;
    for (uint32_t level = 0; level < kLevels && high_ - low_ > kFewDistances; ++level) {
      CountBins(found, level);
      const uint32_t bin = FindBin(target, before);
      if (bin >= kBins - (level == 0 ? 1 : 0))
        return;  // none reaches it, or the one without an end
#pragma unroll
      for (uint32_t i = 0; i < kLevels; ++i) {
        if (i == level) found[i] = static_cast<float>(bin);
      }
      nearest += bin * width;
      const auto from = static_cast<float>(nearest), to = static_cast<float>(nearest + width);
      low_ = max(__float_as_uint(from), 1u) - 1;
      high_ = __float_as_uint(to) + 1;
      SetRange(__uint_as_float(low_), __uint_as_float(high_));
      width /= kBins;
    }
  }

  // Adds the weights in the bins found so far to the bins they are divided into.
  __device__ void CountBins(const float (&found)[kLevels], uint32_t level) const {
    __syncthreads();  // the previous bins have been read
    for (uint32_t i = threadIdx.x; i < kBins; i += kThreads) {
      room_.low[i] = 0;
      room_.low[kBins + i] = 0;
      room_.high[i] = 0;
    }
    __syncthreads();
    kept_.ForEach([&](uint32_t, float weight) {
      if (!MayBeIn(weight)) return;
      float place = __uint_as_float(Distance(weight)) * kFirstScale;
      bool is_in = true;
#pragma unroll
      for (uint32_t i = 0; i + 1 < kLevels; ++i) {
        if (i >= level) break;
        is_in &= place >= found[i] && place < found[i] + 1;
        place = (place - found[i]) * kBins;
      }
      if (!is_in) return;
      const auto bin = static_cast<uint32_t>(fminf(place, kBins - 1));
      const auto fixed = static_cast<uint64_t>(weight * 0x1p35f);
      room_.low.AtomicAdd(bin, static_cast<uint32_t>(fixed) & 0xfff);
      room_.low.AtomicAdd(kBins + bin, static_cast<uint32_t>(fixed >> 12) & 0xfff);
      room_.high.AtomicAdd(bin, static_cast<uint32_t>(fixed >> 24));
    });
    __syncthreads();
  }

  // The first bin with which the sum reaches the target, kBins if none does; adds what lies before
  // it to `before`.
  __device__ uint32_t FindBin(double target, double& before) const {
    constexpr uint32_t kEach = kBins / kThreads;
    double mine[kEach], sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
      const uint32_t i = threadIdx.x * kEach + j;
      const uint32_t low = room_.low[i], middle = room_.low[kBins + i], high = room_.high[i];
      mine[j] = (high * 0x1p24 + middle * 0x1p12 + low) * 0x1p-35;
      sum += mine[j];
    }
    double at = before + BlockScan(sum, room_.doubles).before;
    uint32_t reached = 0;  // counted from the last
    double before_reached = 0;
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
      if (reached == 0 && mine[j] > 0 && at + mine[j] >= target) {
        reached = kBins - (threadIdx.x * kEach + j);
        before_reached = at;
      }
      at += mine[j];
    }
    const uint32_t first = BlockMax(reached, room_.integers);
    if (first == 0) return kBins;
    if (reached == first) room_.found[0] = before_reached;
    __syncthreads();
    before = room_.found[0];
    return kBins - first;
  }

  template <typename Takes>
  __device__ double SumOf(Takes takes) const {
    double sum = 0;
    kept_.ForEach([&](uint32_t, float weight) {
      if (takes(weight)) sum += weight;
    });
    return BlockSum(sum, room_.doubles);
  }

  // Of the candidates at a distance the last one that is needed.
  __device__ uint32_t LastOf(uint32_t farthest, double before, double target) const {
    const auto for_each = [&](auto f) {
      kept_.ForEach([&](uint32_t id, float weight) {
        if (MayBeIn(weight) && Distance(weight) == farthest) f(id, weight);
      });
    };
    uint32_t number = 0;
    for_each([&](uint32_t, float) { ++number; });
    const uint32_t end = kept_.size() - 1;
    if (BlockSum(number, room_.integers) <= 1) return end;
    return Lowest(0, end, [&](uint32_t bound) {
      double sum = 0;
      for_each([&](uint32_t id, float weight) { sum += id <= bound ? weight : 0.0f; });
      return before + BlockSum(sum, room_.doubles) >= target;
    });
  }

  // The lowest bound of [low, high] that is enough; `high` if none is.
  template <typename IsEnough>
  __device__ static uint32_t Lowest(uint32_t low, uint32_t high, IsEnough is_enough) {
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

  const KeptCandidates<kThreads> kept_;
  const SelectRoom room_;
  float mean_ = 0;
  uint32_t low_ = 0, high_ = 0;  // distances, as bits
  float below_[2], above_[2];
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_TYPICAL_FILTER_H_
