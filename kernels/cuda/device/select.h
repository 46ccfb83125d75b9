// Selection without a sort: the first elements of an array in the order "larger bits first, then
// lower id", up to a count or a sum of weights.
//
// An element's place in that order is one integer, its key. The smallest selected key is found by
// radix select, digit by digit: a histogram of the next digit over the elements that share the
// digits found so far, in shared memory, then a scan over it. Sums of weights are exact per bin:
// elements of a bin share their exponent, so their significands add up as integers; across bins
// they are added in double in one order. A block works on one array; all threads get the result.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SELECT_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SELECT_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/for_each.h"
#include "kernels/cuda/device/scan.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kSelectIdBits = 22;
inline constexpr uint32_t kMaxSelectIds = 1u << kSelectIdBits;
// Sums of this many half significands fit in 32 bits.
inline constexpr uint32_t kMaxSelectVocabulary = 1u << 20;
inline constexpr uint32_t kSelectBins = 2048;

__device__ inline uint64_t SelectKey(uint32_t bits, uint32_t id) {
  return (static_cast<uint64_t>(bits) << kSelectIdBits) | (kMaxSelectIds - 1 - id);
}
__device__ inline uint32_t SelectedBits(uint64_t key) {
  return static_cast<uint32_t>(key >> kSelectIdBits);
}
__device__ inline uint32_t SelectedId(uint64_t key) {
  return kMaxSelectIds - 1 - (static_cast<uint32_t>(key) & (kMaxSelectIds - 1));
}

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

// A digit of keys, the first ones from the bits, the last ones from the id.
struct SelectDigit {
  uint32_t shift;
  uint32_t width;
};
__device__ inline SelectDigit DigitOf(uint32_t level) {
  if (level == 0) return {kSelectIdBits + 21, 11};
  if (level == 1) return {kSelectIdBits + 10, 11};
  if (level == 2) return {kSelectIdBits, 10};
  if (level == 3) return {11, 11};
  return {0, 11};
}
inline constexpr uint32_t kSelectLevels = 5;

// kByWeight: an element counts as the non-negative float given by its bits; else as one.
template <uint32_t kThreads, bool kByWeight>
class Selector {
 public:
  __device__ Selector(const float* x, uint32_t n, const SelectRoom& room)
      : x_(x), n_(n), room_(room) {}

  // Among the elements with a key of at least `least` (to_bits(x) gives the bits; 0: excluded), the
  // key of the last one needed to reach the goal: a number of elements, or a share of the total
  // sum. `least` if all of them do not exceed that number.
  template <typename ToBits>
  __device__ uint64_t Reaching(double goal, uint64_t least, ToBits to_bits) {
    before_ = 0;
    uint64_t found = 0;
    for (uint32_t level = 0; level < kSelectLevels; ++level) {
      const SelectDigit digit = DigitOf(level);
      Clear();
      ForEach<kThreads>(x_, n_, [&](uint32_t id, float value) {
        const uint32_t bits = to_bits(value);
        const uint64_t key = SelectKey(bits, id);
        if (bits != 0 && key >= least && key >> digit.shift >> digit.width == found) {
          Add(bits, static_cast<uint32_t>(key >> digit.shift) & ((1u << digit.width) - 1));
        }
      });
      __syncthreads();
      const uint32_t exponent = SelectedBits(found << digit.width << digit.shift) >> 23;
      const uint32_t bin = FindBin(level == 0, goal, exponent);
      if (bin == kSelectBins) return least;
      found = found << digit.width | bin;
      // Done: the whole bin is selected, or it has one element.
      const uint64_t first = found << digit.shift;
      const bool one = level >= 2 && room_.found[1] == __uint_as_float(SelectedBits(first));
      if (kByWeight ? one : before_ + room_.found[1] == target_)
        return first > least ? first : least;
    }
    return found;
  }

 private:
  static constexpr uint32_t kBinsPerThread = kSelectBins / kThreads;

  __device__ void Clear() const {
    __syncthreads();  // the previous digit's bins have been read
    for (uint32_t i = threadIdx.x; i < kSelectBins; i += kThreads) {
      room_.low[i] = 0;
      if (kByWeight) room_.high[i] = 0;
    }
    __syncthreads();
  }

  __device__ void Add(uint32_t bits, uint32_t bin) const {
    if constexpr (kByWeight) {
      const uint32_t significand = (bits & 0x7fffffu) | (bits >> 23 != 0 ? 0x800000u : 0u);
      room_.low.AtomicAdd(bin, significand & 0xfffu);
      room_.high.AtomicAdd(bin, significand >> 12);
    } else {
      room_.low.AtomicAdd(bin, 1u);
    }
  }

  // The sum of bin `i` of the digit. At the first level a bin's index includes the exponent.
  __device__ double Measure(bool first_level, uint32_t i, uint32_t exponent) const {
    const double low = static_cast<double>(static_cast<uint32_t>(room_.low[i]));
    if constexpr (!kByWeight) return low;
    const double high = static_cast<double>(static_cast<uint32_t>(room_.high[i]));
    const int power = static_cast<int>(first_level ? i >> 2 : exponent);
    return ldexp(high * 4096.0 + low, (power > 0 ? power : 1) - 150);
  }

  // The bin, from the highest down, in which the goal is reached; the lowest non-empty bin if
  // rounding leaves a remainder. kSelectBins: everything is selected. Adds the sum above the bin to
  // before_.
  __device__ uint32_t FindBin(bool first_level, double goal, uint32_t exponent) {
    double mine[kBinsPerThread], sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < kBinsPerThread; ++j) {
      mine[j] = Measure(first_level, BinOf(j), exponent);
      sum += mine[j];
    }
    const Scan<double> scan = BlockScan(sum, room_.doubles);
    if (first_level) {
      target_ = kByWeight ? goal * scan.total : goal;
      if (!kByWeight && scan.total <= goal) return kSelectBins;
      if (scan.total == 0) return kSelectBins;
    }
    // Positions count from the highest bin; 0 is none.
    uint32_t reached = 0, filled = 0;
    double before = before_ + scan.before;
#pragma unroll
    for (uint32_t j = 0; j < kBinsPerThread; ++j) {
      if (mine[j] > 0) {
        filled = threadIdx.x * kBinsPerThread + j + 1;
        if (reached == 0 && before + mine[j] >= target_) reached = kSelectBins + 1 - filled;
      }
      before += mine[j];
    }
    const uint32_t best = BlockMax(reached, room_.integers);
    const uint32_t last = BlockMax(filled, room_.integers);
    const uint32_t place = best != 0 ? kSelectBins - best : last - 1;
    before = before_ + scan.before;
#pragma unroll
    for (uint32_t j = 0; j < kBinsPerThread; ++j) {
      if (threadIdx.x * kBinsPerThread + j == place) {
        room_.found[0] = before;
        room_.found[1] = mine[j];
      }
      before += mine[j];
    }
    __syncthreads();
    before_ = room_.found[0];
    return kSelectBins - 1 - place;
  }

  __device__ uint32_t BinOf(uint32_t j) const {
    return kSelectBins - 1 - (threadIdx.x * kBinsPerThread + j);
  }

  const float* const x_;
  const uint32_t n_;
  const SelectRoom room_;
  double before_ = 0;  // sum over elements with larger digits than those found
  double target_ = 0;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SELECT_H_
