// Selection without a sort: the first elements of an array in the order "larger bits first, then
// lower id", up to a count or a sum of weights.
//
// The smallest selected key (device/select_key.h) is found by radix select, digit by digit: a
// histogram of the next digit over the elements that share the digits found so far, in shared
// memory, then a scan over it. Sums of weights are exact per bin: elements of a bin share their
// exponent, so their significands add up as integers; across bins they are added in double in one
// order. A block works on one array; all threads get the result.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SELECT_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SELECT_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/scan.h"
#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// Shared memory reused by successive selections of a block.
struct SelectRoom {
  SharedArray<uint32_t> low;       // (kSelectBins) counts, or sums of the significands' low halves
  SharedArray<uint32_t> high;      // (kSelectBins) sums of their high halves
  SharedArray<double> doubles;     // (kBlockReduceRoom)
  SharedArray<uint32_t> integers;  // (kBlockReduceRoom)
  SharedArray<double> found;       // (2) sums before the bin, and in it

  __device__ explicit SelectRoom(SharedArena& arena)
      : low(arena.Take<uint32_t>(kSelectBins)),
        high(arena.Take<uint32_t>(kSelectBins)),
        doubles(arena.Take<double>(kBlockReduceRoom)),
        integers(arena.Take<uint32_t>(kBlockReduceRoom)),
        found(arena.Take<double>(2)) {}
};
inline constexpr size_t kSelectRoomBytes =
    2 * SharedBytes<uint32_t>(kSelectBins) + SharedBytes<double>(kBlockReduceRoom) +
    SharedBytes<uint32_t>(kBlockReduceRoom) + SharedBytes<double>(2);

// Goals of a selection: a number of elements, or a share of the sum of all, of which each counts as
// the non-negative float given by its bits.
struct NumberGoal {
  static constexpr bool kByWeight = false;
  double number;
};
struct ShareGoal {
  static constexpr bool kByWeight = true;
  double share;
};

// A block that already has the histogram of the first digit finds that digit first (FirstDigit,
// then Rest).
template <uint32_t kThreads>
class Selector {
 public:
  __device__ explicit Selector(const SelectRoom& room) : room_(room) {}

  // Among the elements of x with a key of at least `least` (to_bits(x) gives the bits; 0:
  // excluded), the key of the last one needed to reach the goal. `least` if there are not more than
  // that number.
  template <typename Goal, typename Floats, typename ToBits>
  __device__ uint64_t Reaching(Goal goal, const Floats& x, uint64_t least, ToBits to_bits) {
    found_ = 0;
    CountDigits<Goal::kByWeight>(0, x, least, to_bits);
    return FirstDigit(goal) == kSelectBins ? least : Rest<Goal>(x, least, to_bits);
  }

  // The first digit of that key, from its histogram, which is in the room; kSelectBins:
  // everything is selected.
  __device__ uint32_t FirstDigit(NumberGoal goal) {
    return FirstBin<false>([&](double) { return goal.number; });
  }
  __device__ uint32_t FirstDigit(ShareGoal goal) {
    return FirstBin<true>([&](double total) { return goal.share * total; });
  }

  // The key, after its first digit. What has a smaller first digit may be missing from x.
  template <typename Goal, typename Floats, typename ToBits>
  __device__ uint64_t Rest(const Floats& x, uint64_t least, ToBits to_bits) {
    constexpr bool kByWeight = Goal::kByWeight;
    uint32_t level = 0;
    while (level + 1 < kSelectLevels && !IsWhole<kByWeight>(level)) {
      CountDigits<kByWeight>(++level, x, least, to_bits);
      __syncthreads();
      const SelectDigit digit = DigitOf(level);
      const uint32_t exponent = SelectedBits(found_ << digit.width << digit.shift) >> 23;
      const Bins bins = ReadBins([&](uint32_t i) { return Measure<kByWeight>(i, exponent); });
      found_ = found_ << digit.width | FindBin(bins);
    }
    const uint64_t first = found_ << DigitOf(level).shift;
    return first > least ? first : least;
  }

 private:
  static constexpr uint32_t kBinsPerThread = kSelectBins / kThreads;

  // A thread's bins, from the highest down, and what all threads before it have.
  struct Bins {
    double mine[kBinsPerThread];
    Scan<double> scan;
  };

  // Whether the bin found is selected as a whole, or has one element.
  template <bool kByWeight>
  __device__ bool IsWhole(uint32_t level) const {
    if constexpr (!kByWeight) return before_ + within_ == target_;
    const uint64_t first = found_ << DigitOf(level).shift;
    return level >= 2 && within_ == __uint_as_float(SelectedBits(first));
  }

  // The histogram of a digit, of the elements that share those found.
  template <bool kByWeight, typename Floats, typename ToBits>
  __device__ void CountDigits(uint32_t level, const Floats& x, uint64_t least,
                              ToBits to_bits) const {
    const SelectDigit digit = DigitOf(level);
    Clear<kByWeight>();
    // Most elements do not share the digits found, and of those found the ones of the bits tell.
    const uint32_t end = digit.shift + digit.width;
    const uint32_t shift = end > kSelectIdBits ? end - kSelectIdBits : 0;
    const auto prefix =
        static_cast<uint32_t>(end < kSelectIdBits ? found_ >> (kSelectIdBits - end) : found_);
    x.template ForEach<kThreads>([&](uint32_t id, float value) {
      const uint32_t bits = to_bits(value);
      if (level > 0 && bits >> shift != prefix) return;
      const uint64_t key = SelectKey(bits, id);
      if (bits != 0 && key >= least && key >> digit.shift >> digit.width == found_) {
        Add<kByWeight>(bits, static_cast<uint32_t>(key >> digit.shift) & ((1u << digit.width) - 1));
      }
    });
  }

  template <bool kByWeight>
  __device__ void Clear() const {
    __syncthreads();  // the previous digit's bins have been read
    for (uint32_t i = threadIdx.x; i < kSelectBins; i += kThreads) {
      room_.low[i] = 0;
      if (kByWeight) room_.high[i] = 0;
    }
    __syncthreads();
  }

  template <bool kByWeight>
  __device__ void Add(uint32_t bits, uint32_t bin) const {
    if constexpr (kByWeight) {
      room_.low.AtomicAdd(bin, SignificandLow(bits));
      room_.high.AtomicAdd(bin, SignificandHigh(bits));
    } else {
      room_.low.AtomicAdd(bin, 1u);
    }
  }

  // The sum of bin `i`, whose elements have this exponent.
  template <bool kByWeight>
  __device__ double Measure(uint32_t i, uint32_t exponent) const {
    const double low = static_cast<double>(static_cast<uint32_t>(room_.low[i]));
    if constexpr (!kByWeight) return low;
    const double high = static_cast<double>(static_cast<uint32_t>(room_.high[i]));
    const int power = static_cast<int>(exponent);
    return ldexp(high * 4096.0 + low, (power > 0 ? power : 1) - 150);
  }

  template <typename MeasureOf>
  __device__ Bins ReadBins(MeasureOf measure_of) const {
    Bins bins;
    double sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < kBinsPerThread; ++j) {
      bins.mine[j] = measure_of(kSelectBins - 1 - (threadIdx.x * kBinsPerThread + j));
      sum += bins.mine[j];
    }
    bins.scan = BlockScan(sum, room_.doubles);
    return bins;
  }

  // At the first level, where a bin's index includes the exponent. `target_of` gives the goal as a
  // sum, of the sum of all.
  template <bool kByWeight, typename TargetOf>
  __device__ uint32_t FirstBin(TargetOf target_of) {
    __syncthreads();
    const Bins bins = ReadBins([&](uint32_t i) { return Measure<kByWeight>(i, i >> 2); });
    const double total = bins.scan.total;
    before_ = 0;
    target_ = target_of(total);
    found_ = total == 0 || (!kByWeight && total <= target_) ? kSelectBins : FindBin(bins);
    return static_cast<uint32_t>(found_);
  }

  // The bin, from the highest down, in which the goal is reached; the lowest non-empty bin if
  // rounding leaves a remainder. Adds the sum above the bin to before_.
  __device__ uint32_t FindBin(const Bins& bins) {
    // Positions count from the highest bin; 0 is none.
    uint32_t reached = 0, filled = 0;
    double before = before_ + bins.scan.before;
#pragma unroll
    for (uint32_t j = 0; j < kBinsPerThread; ++j) {
      if (bins.mine[j] > 0) {
        filled = threadIdx.x * kBinsPerThread + j + 1;
        if (reached == 0 && before + bins.mine[j] >= target_) reached = kSelectBins + 1 - filled;
      }
      before += bins.mine[j];
    }
    const uint32_t best = BlockMax(reached, room_.integers);
    const uint32_t last = BlockMax(filled, room_.integers);
    const uint32_t place = best != 0 ? kSelectBins - best : last - 1;
    before = before_ + bins.scan.before;
#pragma unroll
    for (uint32_t j = 0; j < kBinsPerThread; ++j) {
      if (threadIdx.x * kBinsPerThread + j == place) {
        room_.found[0] = before;
        room_.found[1] = bins.mine[j];
      }
      before += bins.mine[j];
    }
    __syncthreads();
    before_ = room_.found[0];
    within_ = room_.found[1];
    return kSelectBins - 1 - place;
  }

  const SelectRoom room_;
  uint64_t found_ = 0;  // digits
  double before_ = 0;   // sum over elements with larger digits than those found
  double within_ = 0;   // over those that share them
  double target_ = 0;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SELECT_H_
